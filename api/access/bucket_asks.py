"""The actions on buckets of imports, exports and bulk operations.

Source: Developer Guide, "Requesting a table export in DynamoDB" and "Requesting a table import in
DynamoDB"; Service Authorization Reference, "Actions, resources, and condition keys for Amazon S3".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from dynactor.api.access.ask import Ask, Asking
from dynactor.api.access.facts import ActionFacts, RequestFacts
from dynactor.model.access.bucket_grant import READ, WRITE, bucket_arn
from dynactor.model.transfers.transfer_names import transfer_prefix

LIST: Final = "s3:ListBucket"
PREFIX: Final = "s3:prefix"


class Objects(NamedTuple):
    """The objects of a bucket whose keys begin with a prefix, and what a request does with them."""

    action: str
    bucket: str
    prefix: str

    @property
    def resource(self) -> str:
        """The start of the ARNs of the objects."""
        return f"{bucket_arn(self.bucket)}/{self.prefix}"


class PrefixFacts(ActionFacts):
    """The condition keys of a list of the objects below a prefix."""

    __slots__ = ("_prefix",)

    def __init__(self, request: RequestFacts, prefix: str | None) -> None:
        super().__init__(request)
        self._prefix = prefix

    def _derived(self, key: str) -> Sequence[str] | None:
        if key == PREFIX:
            return None if self._prefix is None else (self._prefix,)
        return super()._derived(key)


def list_source(asking: Asking) -> Iterator[Ask]:
    """The list of the source's objects, for ImportTable and StartBulkPutItems."""
    source = _source(asking.request)
    facts = PrefixFacts(asking.facts, source.S3KeyPrefix)
    yield Ask(LIST, bucket_arn(source.S3Bucket), facts)


def _source(request: Any) -> Any:
    return getattr(request, "S3BucketSource", None) or request.InputS3Configuration


ObjectsRule: TypeAlias = Callable[[Any], Iterator[Objects]]


def _of_import(request: Any) -> Iterator[Objects]:
    source = _source(request)
    yield Objects(READ, source.S3Bucket, source.S3KeyPrefix or "")


def _of_bulk_operation(request: Any) -> Iterator[Objects]:
    yield from _of_import(request)
    output = request.OutputS3Configuration
    # The operation refuses a request without an output bucket.
    if output.S3Bucket is not None:
        yield Objects(WRITE, output.S3Bucket, transfer_prefix(output.S3KeyPrefix))


def _of_export(request: Any) -> Iterator[Objects]:
    yield Objects(WRITE, request.S3Bucket, transfer_prefix(request.S3Prefix))


# The objects that operations read and write after their answers.
OBJECTS: Final[dict[str, ObjectsRule]] = {
    "ExportTableToPointInTime": _of_export,
    "ImportTable": _of_import,
    "StartBulkPutItems": _of_bulk_operation,
}

"""The actions on buckets of imports, exports and bulk operations.

Source: Developer Guide, "Requesting a table export in DynamoDB" and "Requesting a table import in
DynamoDB"; Service Authorization Reference, "Actions, resources, and condition keys for Amazon S3".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

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


class BucketSource(Protocol):
    """The bucket and the prefix of objects to read."""

    @property
    def S3Bucket(self) -> str: ...  # noqa: N802, D102
    @property
    def S3KeyPrefix(self) -> str | None: ...  # noqa: N802, D102


def list_source(asking: Asking, source: BucketSource) -> Ask:
    """The list of the objects to read."""
    facts = PrefixFacts(asking.facts, source.S3KeyPrefix)
    return Ask(LIST, bucket_arn(source.S3Bucket), facts)


def read_objects(source: BucketSource) -> Objects:
    """The objects that an operation reads after its answer."""
    return Objects(READ, source.S3Bucket, source.S3KeyPrefix or "")


def written_objects(bucket: str, prefix: str | None) -> Objects:
    """The objects that an operation writes after its answer."""
    return Objects(WRITE, bucket, transfer_prefix(prefix))


# Yields the objects that an operation uses after its answer, for a request.
ObjectsRule: TypeAlias = Callable[[Any], Iterator[Objects]]

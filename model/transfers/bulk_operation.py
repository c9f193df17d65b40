"""A bulk operation, which puts the items of files into one existing table."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.access.bucket_grant import BucketGrant
from dynactor.model.transfers.transfer_names import transfer_folder

BulkStatus: TypeAlias = Literal[
    "IN_PROGRESS", "COMPLETED", "COMPLETED_WITH_ERRORS", "CANCELLING", "CANCELLED", "FAILED"
]


class BulkUsage(Struct, frozen=True):
    """The bytes that were put into the table, and into each index by its name."""

    table_bytes: int = 0
    local_index_bytes: dict[str, int] = {}
    global_index_bytes: dict[str, int] = {}


class BulkProgress(Struct, frozen=True):
    """The counts of a bulk operation.

    ``processed_items`` includes ``failed_items`` and the writes whose condition was false.
    ``total_bytes`` is None until the objects are listed.
    """

    processed_items: int = 0
    failed_items: int = 0
    processed_bytes: int = 0
    total_bytes: int | None = None
    usage: BulkUsage = BulkUsage()


class BulkOperation(Struct, frozen=True):
    """A bulk operation's metadata. ``request`` has the members of the request."""

    operation_id: str
    table_name: str
    table_id: int
    table_uuid: str
    request: dict[str, Any]
    began_epoch_seconds: float
    ended_epoch_seconds: float | None = None
    status: BulkStatus = "IN_PROGRESS"
    progress: BulkProgress = BulkProgress()
    failure_code: str | None = None
    failure_message: str | None = None
    # The objects that the caller may use; None without policies.
    grant: BucketGrant | None = None

    @property
    def is_over(self) -> bool:
        """Whether the operation writes no more items."""
        return self.status not in ("IN_PROGRESS", "CANCELLING")

    @property
    def output_folder(self) -> str:
        """The prefix of the keys of all output objects."""
        prefix = self.request["OutputS3Configuration"].get("S3KeyPrefix")
        return transfer_folder(prefix, self.operation_id)

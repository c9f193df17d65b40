"""An import of files into one new table."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.access.bucket_grant import BucketGrant

ImportStatus: TypeAlias = Literal["IN_PROGRESS", "COMPLETED", "CANCELLED", "FAILED"]


class ImportCounts(Struct, frozen=True):
    """The counts of an import.

    ``imported_items`` are the items in the table. An item that a later one with the same key has
    replaced counts as a duplicate only.
    """

    processed_bytes: int = 0
    processed_items: int = 0
    imported_items: int = 0
    errors: int = 0
    duplicates: int = 0


class TableImport(Struct, frozen=True):
    """An import's metadata.

    ``request`` has the members of the request, with their wire names. The import is in progress as
    long as its table is CREATING; without its table, it was canceled.
    """

    import_id: str
    table_name: str
    table_id: int
    table_uuid: str
    request: dict[str, Any]
    began_epoch_seconds: float
    ended_epoch_seconds: float | None = None
    status: ImportStatus = "IN_PROGRESS"
    counts: ImportCounts = ImportCounts()
    failure_code: str | None = None
    failure_message: str | None = None
    # The objects that the caller may use; None without policies.
    grant: BucketGrant | None = None

    @property
    def is_upload(self) -> bool:
        """Whether a client uploads the files over the admin port."""
        return "S3BucketSource" not in self.request

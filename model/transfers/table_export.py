"""An export of one table into a bucket."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.access.bucket_grant import BucketGrant
from dynactor.model.transfers.transfer_names import transfer_folder

ExportPhase: TypeAlias = Literal["COPYING", "WRITING", "COMPLETED", "FAILED"]
ExportStatus: TypeAlias = Literal["IN_PROGRESS", "COMPLETED", "FAILED"]


class TableExport(Struct, frozen=True):
    """An export's metadata.

    ``request`` has the members of the request, with their wire names. ``backup_label`` and
    ``rows_id`` name the internal backup from which the files are written. ``starts`` are the first
    positions of the table's partitions when the export began.
    """

    export_id: str
    table_name: str
    table_uuid: str
    rows_id: int
    request: dict[str, Any]
    began_epoch_seconds: float
    # The time of the exported state.
    exported_epoch_seconds: float
    backup_label: str
    starts: tuple[bytes, ...]
    phase: ExportPhase = "COPYING"
    ended_epoch_seconds: float | None = None
    item_count: int = 0
    billed_size_bytes: int = 0
    failure_code: str | None = None
    failure_message: str | None = None
    # The objects that the caller may use; None without policies.
    grant: BucketGrant | None = None

    @property
    def status(self) -> ExportStatus:
        """The status that clients see."""
        match self.phase:
            case "COMPLETED" | "FAILED":
                return self.phase
        return "IN_PROGRESS"

    @property
    def period(self) -> dict[str, Any] | None:
        """The specification of an incremental export; None for a full one."""
        specification: dict[str, Any] | None = self.request.get("IncrementalExportSpecification")
        if specification is None:
            return None
        end = specification.get("ExportToTime", self.exported_epoch_seconds)
        return {"ExportViewType": "NEW_AND_OLD_IMAGES", **specification, "ExportToTime": end}

    @property
    def is_ion(self) -> bool:
        """Whether the files have Amazon Ion, and not DynamoDB JSON."""
        return self.request.get("ExportFormat") == "ION"

    @property
    def export_type(self) -> str:
        """The type of the export."""
        return "FULL_EXPORT" if self.period is None else "INCREMENTAL_EXPORT"

    @property
    def data_folder(self) -> str:
        """The prefix of the keys of data files; incremental exports share one."""
        folder = self.folder if self.period is None else self.folder.rpartition("/")[0]
        return f"{folder}/data"

    @property
    def folder(self) -> str:
        """The prefix of the keys of all objects of the export."""
        return transfer_folder(self.request.get("S3Prefix"), self.export_id)

    @property
    def manifest_key(self) -> str:
        """The key of the manifest."""
        return f"{self.folder}/manifest-summary.json"

"""The requests and answers of the admin listener's paths for uploads."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from dynactor.model.transfers.table_import import ImportStatus

UPLOADS_PATH: Final = "/uploads"
# The content type of a piece: DynamoDB JSON, compressed with gzip.
PIECE_TYPE: Final = "application/gzip"
END: Final = "end"
ERRORS: Final = "errors"


class UploadRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /uploads``: the members of CreateTable."""

    table: dict[str, Any]


class EndRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /uploads/ID/end``: the number of pieces."""

    pieces: int


class UploadAnswer(Struct, frozen=True):
    """The state of an upload and its import; ``pieces`` counts the first ones without a gap."""

    id: str
    table: str
    status: ImportStatus
    pieces: int
    ended: bool
    processed: int
    imported: int
    errors: int
    duplicates: int
    failure: str | None


class UploadsAnswer(Struct, frozen=True):
    """The uploads whose imports are in progress."""

    uploads: list[UploadAnswer]

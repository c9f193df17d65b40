"""The requests and answers of the admin listener's path for backups."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

BACKUPS_PATH: Final = "/backups"


class BackupRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /backups``."""

    name: str | None = None


class BackupAnswer(Struct, frozen=True):
    """A finished backup and its directory on the server."""

    name: str
    directory: str

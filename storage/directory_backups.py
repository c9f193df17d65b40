"""Backups: copies of the whole data directory, taken while it is in use.

The engine's files never change, so they are linked instead of copied. A backup of any size takes a
fraction of a second, and uses disk space only as the live data changes. Hard links need the same
file system; copy the backup from there to another file system.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from dynactor.storage.store import Store

# No leading dot: unfinished backups have one, and backups are never hidden files.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\Z")


class BadName(ValueError):
    """The name of a backup is invalid; the message says which names are valid."""


class Backup(Struct, frozen=True):
    """A backup. To use it, start a server on a copy of the directory."""

    name: str
    directory: Path


class Backups:
    """Creates backups of a store, each in a subdirectory of one directory."""

    def __init__(self, store: Store, directory: Path) -> None:
        self._store = store
        self._directory = directory.absolute()

    async def make(self, name: str) -> Backup:
        """Back up all data that is durable now; the backup is durable when this returns.

        The backup may include commits that are accepted meanwhile, each as a whole. If the caller
        is canceled, the backup is still completed. After ``BadName`` no backup was created. Raises
        else as ``Store.checkpoint``.
        """
        if not _NAME.match(name):
            raise BadName(
                f"{name!r} is not a valid name of a backup: use letters, digits, '_', '-', '.', "
                "at most 200, not beginning with '-' or '.'"
            )
        made = self._directory / name
        await self._store.checkpoint(made)
        return Backup(name, made)

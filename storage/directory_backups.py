"""Backups: whole data directories beside the one in use, made while it is used.

The engine's files, which never change, are linked, not copied: so a backup takes a fraction of a
second whatever its size, and disk space only as the data in use changes. It lies on the data's own
file system for that; who wants it elsewhere copies it from there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from dynactor.storage.store import Store

# Begins with no dot, as what is not whole yet does, and nothing hidden is made.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\Z")


class BadName(ValueError):
    """What is no name of a backup; the message says what is."""


class Backup(Struct, frozen=True):
    """A data directory to start a server on, once it is copied."""

    name: str
    directory: Path


class Backups:
    """Makes backups of a store, each a directory in one directory."""

    def __init__(self, store: Store, directory: Path) -> None:
        self._store = store
        self._directory = directory.absolute()

    async def make(self, name: str) -> Backup:
        """Back up all that is durable now; it is durable itself when this returns.

        What is accepted meanwhile may be in it: all of a batch, or nothing. Whoever is cancelled
        while waiting leaves it to be made.

        Raises:
            BadName: nothing was made.
            StoreError: as ``Store.checkpoint``.
        """
        if not _NAME.match(name):
            raise BadName(
                f"{name!r} is no name for a backup: give letters, digits, '_', '-' and '.', "
                "at most 200, not beginning with '-' or '.'"
            )
        made = self._directory / name
        await self._store.checkpoint(made)
        return Backup(name, made)

"""Backups: whole data directories beside the one in use, made while it is used.

A backup is there when it is whole; what a crash leaves of one that was being made is removed when
the next one is. The engine's files, which never change, are linked, not copied: so a backup takes a
fraction of a second whatever its size, and disk space only as the data in use changes. It lies on
the data's own file system for that; who wants it elsewhere copies it from there.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path
from typing import Final

from msgspec import Struct

from storage.data_directory import open_data_directory, sync_directory
from storage.store import CannotOpen, Store

# Begins with no dot, as what is not whole yet does, and nothing hidden is made.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\Z")
_UNFINISHED: Final = ".unfinished"


class BadName(ValueError):
    """What is no name of a backup; the message says what is."""


class Taken(Exception):
    """There is a backup of that name."""


class Backup(Struct, frozen=True):
    """A data directory to start a server on, or to copy first."""

    name: str
    directory: Path


class Backups:
    """Makes backups of a store, one at a time, each a directory in one directory."""

    def __init__(self, store: Store, directory: Path) -> None:
        self._store = store
        self._directory = directory.absolute()
        self._making = asyncio.Lock()

    async def make(self, name: str) -> Backup:
        """Back up all that is durable now; it is durable itself when this returns.

        What is accepted meanwhile may be in it: all of a batch, or nothing.

        Raises:
            BadName, Taken: nothing was made.
            CannotOpen: the directory can't be used, or another server makes a backup there.
            StoreError: the store failed, or is closed.
        """
        if not _NAME.match(name):
            raise BadName(
                f"{name!r} is no name for a backup: give letters, digits, '_', '-' and '.', "
                "at most 200, not beginning with '-' or '.'"
            )
        made = self._directory / name
        unfinished = self._directory / _UNFINISHED
        async with self._making:
            if made.exists():
                raise Taken(f"There is a backup of that name: {made}")
            try:
                await asyncio.to_thread(_remove, unfinished)
                await self._store.checkpoint(unfinished)
                await asyncio.to_thread(_give_name, unfinished, made)
            except OSError as error:
                raise CannotOpen(
                    f"The backup {made} can't be made: {error.strerror}. "
                    "Correct the permissions of its directory, or give another --backup-dir."
                ) from error
        return Backup(name, made)


def _give_name(unfinished: Path, made: Path) -> None:
    unfinished.rename(made)
    sync_directory(made.parent)


def _remove(unfinished: Path) -> None:
    """Remove what a crash has left behind.

    Raises:
        CannotOpen: somebody is at work there, or it is nothing of ours.
    """
    if not unfinished.exists():
        return
    open_data_directory(unfinished).close()
    shutil.rmtree(unfinished)

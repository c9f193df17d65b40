"""The ends of scans outside of the store: places to write a table to, or to load rows from.

A sink only derives rows or messages. These do I/O of their own. After a crash, the scan starts
over, because the store does not know what was written outside of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import Future
from collections.abc import Sequence
from typing import NamedTuple

from dynactor.storage.store import Row


class OutsideFailed(Exception):
    """The outside can't be used or has bad data, so the scan ends."""


class Outlet(ABC):
    """Writes the items of a table outside of the store. All methods raise ``OutsideFailed``.

    The rows that are scanned must not change meanwhile.
    """

    @abstractmethod
    async def begin(self) -> None:
        """Called before the first page; called again if the scan starts over."""

    @abstractmethod
    async def write(self, rows: Sequence[Row]) -> None:
        """Write a page of stored items, whose keys are positions."""

    @abstractmethod
    async def finish(self) -> None:
        """Complete everything durably, after the last page."""

    @abstractmethod
    async def abort(self) -> None:
        """Drop what is not complete. Called in any case, and never raises."""


class LoadedRows(NamedTuple):
    """Rows with their whole keys, and the time that the event loop was busy with them."""

    rows: Sequence[tuple[bytes, bytes]]
    took_seconds: float


class Inlet(ABC):
    """Loads rows from outside of the store. All methods raise ``OutsideFailed``."""

    @property
    @abstractmethod
    def target(self) -> tuple[bytes, bytes]:
        """The range of the rows, start inclusive, end exclusive; emptied before the first rows."""

    @abstractmethod
    async def open(self, stopped: Future[None]) -> None:
        """Called when the target is empty; called again if the scan starts over.

        ``stopped`` completes when the scan is stopped. Then ``rows`` returns soon.
        """

    @abstractmethod
    async def rows(self) -> LoadedRows | None:
        """The next rows; None after the last, or when the scan is stopped."""

    @abstractmethod
    async def close(self) -> None:
        """Release everything. Called in any case, and never raises."""

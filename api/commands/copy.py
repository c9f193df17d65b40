"""The command ``dynactor copy``: copies all data of one store to another one.

No server may use either of them.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dynactor.storage.store import CannotOpen, Store, StoreError

if TYPE_CHECKING:
    from dynactor.storage.copies import CopiedTable


def copy(
    *,
    source: Annotated[str, Parameter(name="--from")],
    target: Annotated[str, Parameter(name="--to")],
) -> None:
    """Run the command.

    Parameters
    ----------
    source
        A data directory, or the URL of a PostgreSQL database as for serve --store.
    target
        A data directory or URL, empty or not existing yet.
    """
    # The command's help does not need this module.
    import anyio  # noqa: PLC0415

    try:
        tables = anyio.run(_copy, source, target)
    except StoreError as error:
        sys.exit(f"dynactor: {error}")
    rows = sum(table.rows for table in tables)
    lines = [f"{table.checksum[:16]}  {table.rows:>12,} rows  {table.name}" for table in tables]
    sys.stdout.write("\n".join([*lines, f"{rows:,} rows copied and compared"]) + "\n")


async def _copy(source: str, target: str) -> list[CopiedTable]:
    from dynactor.storage.copies import copy_rows  # noqa: PLC0415

    async with _opened(source, create=False) as first, _opened(target, create=True) as second:
        return await copy_rows(first, second, _RowProgress().add)


@asynccontextmanager
async def _opened(address: str, *, create: bool) -> AsyncIterator[Store]:
    """The store in a directory or database. ``create``: a missing directory is created."""
    if "://" in address:
        from dynactor.api.hosting.open_postgresql import open_postgresql  # noqa: PLC0415

        async with open_postgresql(address) as store:
            # Rows of deleted tables may be left, and must not be copied.
            await store.reclaim(b"", b"\xff")
            yield store
        return
    from dynactor.storage.rocks.store import open_rocks  # noqa: PLC0415

    store = await open_rocks(_directory(address, create=create))
    try:
        yield store
    finally:
        await store.close()


def _directory(path: str, *, create: bool) -> Path:
    from dynactor.storage.backup_mark import refuse_backup  # noqa: PLC0415

    directory = Path(path).expanduser()
    if not create and not (directory / "format").is_file():
        raise CannotOpen(f"{directory} is not a data directory of dynactor")
    refuse_backup(directory)
    return directory


class _RowProgress:
    """Writes the number of rows so far, on a terminal."""

    def __init__(self) -> None:
        self._rows = 0

    def add(self, rows: int) -> None:
        self._rows += rows
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{self._rows:,} rows")
            sys.stderr.flush()

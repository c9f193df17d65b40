"""Checks a data directory that no server uses: reads every row and changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec import MsgspecError, Struct
from rocksdict import AccessType, RdictIter, ReadOptions

from dynactor.model.definitions.table import TABLE_INDEX_ID
from dynactor.storage import catalog, codec, key_layout
from dynactor.storage.data_directory import DataDirectory, open_existing_directory
from dynactor.storage.durable_watermark import DurableMark
from dynactor.storage.log_files import logged_bytes
from dynactor.storage.rocks.engine import check_log_end, open_rows
from dynactor.storage.rocks.errors import translate
from dynactor.storage.rocks.options import RocksOptions, engine_options
from dynactor.storage.store import Damaged, Row, StoreError

_CACHE_BYTES: Final = 8 << 20


class TableCheck(Struct, frozen=True):
    """The number of rows of a table: its items, and the entries of all its indexes.

    ``namespace`` is the region, ``/`` and the access key id; empty for tables outside namespaces.
    """

    name: str
    items: int
    index_entries: int
    namespace: str = ""


class DirectoryCheck(Struct, frozen=True):
    """A data directory without damage.

    ``other_rows`` are stream records, checkpoints, table backups and similar. ``has_mark`` is false
    if there is no mark, so a missing end of the log can't be detected.
    """

    format_version: int
    rows: int
    row_bytes: int
    log_bytes: int
    has_mark: bool
    tables: tuple[TableCheck, ...]
    other_rows: int


def check_directory(path: Path) -> DirectoryCheck:
    """Read everything in a data directory. May take minutes.

    Each block's checksum is verified, and the end of the log is compared with the durable mark. The
    catalog, the heads of partitions, items and index entries are decoded.

    Raises:
        CannotOpen: the directory is not a data directory, or is in use.
        Damaged: something can't be read.
    """
    with closing(open_existing_directory(path)) as directory:
        return _check(directory)


def _check(directory: DataDirectory) -> DirectoryCheck:
    has_mark = directory.mark.exists()
    options = engine_options(RocksOptions(block_cache_bytes=_CACHE_BYTES))
    access = AccessType.read_only(error_if_log_file_exist=False)
    with closing(open_rows(directory.engine, options, access)) as rows:
        if has_mark:
            with closing(DurableMark(directory.mark)) as mark:
                check_log_end(directory, mark, rows)
        counts = _RowCounts()
        for row in _all_rows(rows.iter(ReadOptions())):
            counts.add(row)
    return DirectoryCheck(
        directory.format_version,
        counts.rows,
        counts.row_bytes,
        logged_bytes(directory.engine),
        has_mark,
        tuple(counts.tables()),
        counts.other_rows(),
    )


class _RowCounts:
    """The rows so far, by table and index, and the names of tables."""

    def __init__(self) -> None:
        self.rows = 0
        self.row_bytes = 0
        # Also by namespace, because each namespace has table ids of its own.
        self._names: dict[tuple[str, int], str] = {}
        self._by_index: Counter[tuple[str, int, int]] = Counter()

    def add(self, row: Row) -> None:
        """Decode a row, and count it.

        Raises:
            Damaged: the row can't be decoded.
        """
        self.rows += 1
        self.row_bytes += len(row.key) + len(row.value)
        try:
            self._decode(row)
        except (MsgspecError, ValueError, Damaged) as error:
            raise Damaged(f"The row {row.key!r} has an unknown form: {error}") from error

    def _decode(self, row: Row) -> None:
        namespace, key = key_layout.split_namespace(row.key)
        kind = key_layout.row_kind(key)
        if kind == "table":
            definition = catalog.decode_record(row.value).definition
            self._names[namespace, definition.table_id] = definition.name
        elif kind == "partition":
            catalog.decode_partition_head(row.value)
        elif kind == "item or entry":
            self._by_index[namespace, *key_layout.table_and_index(key)] += 1
            # Decodes the attributes, too, and not only the header.
            assert codec.decode(row.value).item is not None

    def tables(self) -> Iterator[TableCheck]:
        """The tables of the catalogs, by namespace and name."""
        by_table = sorted((owner[0], name, owner) for owner, name in self._names.items())
        for namespace, name, owner in by_table:
            by_index = {
                index_id: count
                for (*each, index_id), count in self._by_index.items()
                if tuple(each) == owner
            }
            items = by_index.pop(TABLE_INDEX_ID, 0)
            yield TableCheck(name, items, sum(by_index.values()), namespace)

    def other_rows(self) -> int:
        """The number of rows other than items and index entries of tables in a catalog."""
        shown = sum(
            count for (*owner, _), count in self._by_index.items() if tuple(owner) in self._names
        )
        return self.rows - shown


def _all_rows(iterator: RdictIter) -> Iterator[Row]:
    """Every row, in the order of keys.

    Raises:
        Damaged: a block can't be read, or its checksum is wrong.
    """
    try:
        iterator.seek_to_first()
        while (key := iterator.key()) is not None:
            yield Row(key, iterator.value())
            iterator.next()
        # An iterator that finds damage ends without an error, so check its status.
        iterator.status()
    except StoreError:
        raise
    except Exception as error:
        raise translate(error) from error

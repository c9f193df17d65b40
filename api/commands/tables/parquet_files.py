"""Converts the files of an export to Parquet. This is the only module that imports pyarrow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from dynactor.api.commands.tables.table_files import (
    CsvOptions,
    SourceFile,
    read_records,
    tables_in,
)
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.model.errors import DynamoDBError
from dynactor.model.files.columns import Columns, ColumnType, cell
from dynactor.model.files.records import Fault
from dynactor.model.values import item as items
from dynactor.model.values.item import Item

# A group of rows is in memory.
_GROUP_ROWS: Final = 10_000


def require_pyarrow() -> None:
    """Check that pyarrow is installed, before a long export; raises ``TransferFailed``."""
    if find_spec("pyarrow") is None:
        raise TransferFailed("Parquet needs pyarrow: pip install 'dynactor[parquet]'")


async def write_parquet(folder: Path, *, doubles: bool) -> Path:
    """Write a Parquet file for each data file of an export; returns their directory.

    The files are read twice, because the types of the columns depend on all items. Raises
    ``TransferFailed`` if a data file is damaged, or ``OSError``.
    """
    [table] = await tables_in([folder])
    columns = Columns()
    async for group in _groups(table.files):
        for item in group:
            columns.add(item)
    types = columns.types(doubles=doubles)
    directory = folder / "parquet"
    _make(directory)
    for number, file in enumerate(table.files):
        await _write(file, types, directory / f"part-{number:05}.parquet")
    return directory


async def _write(file: SourceFile, types: Mapping[str, ColumnType], path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from pyarrow import parquet  # noqa: PLC0415

    schema = pa.schema([(name, _arrow_type(pa, column)) for name, column in types.items()])
    # A reader of *.parquet must not find a file that is not complete.
    unfinished = path.with_suffix(".unfinished")
    with parquet.ParquetWriter(unfinished, schema, compression="zstd") as writer:
        async for group in _groups([file]):
            arrays = [
                pa.array([cell(item.get(name), column) for item in group], type=field.type)
                for (name, column), field in zip(types.items(), schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    unfinished.rename(path)


def _arrow_type(pa: Any, column: ColumnType) -> Any:
    match column.kind:
        case "boolean":
            element = pa.bool_()
        case "binary":
            element = pa.binary()
        case "decimal":
            element = pa.decimal128(column.precision, column.scale)
        case "double":
            element = pa.float64()
        case _:
            element = pa.string()
    return pa.list_(element) if column.is_list else element


async def _groups(files: Sequence[SourceFile]) -> AsyncIterator[list[Item]]:
    group: list[Item] = []
    for file in files:
        async for record in read_records(file, "auto", CsvOptions()):
            if isinstance(record, Fault):
                raise TransferFailed(f"{file.path}:{record.line}: {record.message}")
            try:
                items.check(record.item)
            except DynamoDBError as error:
                raise TransferFailed(f"{file.path}:{record.line}: {error}") from None
            group.append(record.item)
            if len(group) == _GROUP_ROWS:
                yield group
                group = []
    if group:
        yield group


def _make(directory: Path) -> None:
    directory.mkdir(exist_ok=True)

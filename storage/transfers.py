"""The records of exports, imports and bulk operations."""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec import Struct, msgpack

from dynactor.model.transfers.bulk_operation import BulkOperation
from dynactor.model.transfers.table_export import TableExport
from dynactor.model.transfers.table_import import TableImport
from dynactor.storage import key_layout
from dynactor.storage.row_pages import rows_in
from dynactor.storage.store import Row, View

T = TypeVar("T", bound=Struct)


_encoder: Final = msgpack.Encoder()
_export_decoder: Final = msgpack.Decoder(TableExport)
_import_decoder: Final = msgpack.Decoder(TableImport)
_bulk_decoder: Final = msgpack.Decoder(BulkOperation)


def export_key(export_id: str) -> bytes:
    """The key of an export's record."""
    return key_layout.EXPORT + export_id.encode()


def import_key(import_id: str) -> bytes:
    """The key of an import's record."""
    return key_layout.IMPORT + import_id.encode()


def bulk_operation_key(operation_id: str) -> bytes:
    """The key of a bulk operation's record."""
    return key_layout.BULK_OPERATION + operation_id.encode()


def export_row(export: TableExport) -> Row:
    """The row that holds an export's record."""
    return Row(export_key(export.export_id), _encoder.encode(export))


def import_row(table_import: TableImport) -> Row:
    """The row that holds an import's record."""
    return Row(import_key(table_import.import_id), _encoder.encode(table_import))


def bulk_operation_row(operation: BulkOperation) -> Row:
    """The row that holds a bulk operation's record."""
    return Row(bulk_operation_key(operation.operation_id), _encoder.encode(operation))


async def load_exports(view: View) -> list[TableExport]:
    """All exports, the oldest first."""
    return await _load(view, key_layout.EXPORT, _export_decoder)


async def load_imports(view: View) -> list[TableImport]:
    """All imports, the oldest first."""
    return await _load(view, key_layout.IMPORT, _import_decoder)


async def load_bulk_operations(view: View) -> list[BulkOperation]:
    """All bulk operations, the oldest first."""
    return await _load(view, key_layout.BULK_OPERATION, _bulk_decoder)


async def _load(view: View, prefix: bytes, decoder: msgpack.Decoder[T]) -> list[T]:
    rows = rows_in(view, prefix, key_layout.prefix_end(prefix))
    return [decoder.decode(row.value) async for row in rows]

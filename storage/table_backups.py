"""The records of table backups. Their items are rows under an id that no table has."""

from __future__ import annotations

from typing import Final

from msgspec import msgpack

from dynactor.model.tables.table_backup import TableBackup
from dynactor.storage import key_layout
from dynactor.storage.row_pages import rows_in
from dynactor.storage.store import View

_encoder: Final = msgpack.Encoder()
_decoder: Final = msgpack.Decoder(TableBackup)


def row(backup: TableBackup) -> tuple[bytes, bytes]:
    """The key and value of the row that holds a backup's record."""
    return key_layout.table_backup(backup.backup_id), _encoder.encode(backup)


async def load(view: View) -> list[TableBackup]:
    """All backups of tables, sorted by their ids."""
    rows = rows_in(view, *key_layout.TABLE_BACKUPS)
    return [_decoder.decode(each.value) async for each in rows]

"""The records of table backups.

A backup's items are rows under an id that no table has (``dynactor.storage.key_layout``).
"""

from __future__ import annotations

from typing import Final

from msgspec import msgpack

from dynactor.model.tables.table_backup import TableBackup
from dynactor.storage import key_layout
from dynactor.storage.store import View

_PAGE_ROWS: Final = 1_000
_PAGE_BYTES: Final = 4 * 1024 * 1024

_encoder: Final = msgpack.Encoder()
_decoder: Final = msgpack.Decoder(TableBackup)


def row(backup: TableBackup) -> tuple[bytes, bytes]:
    """The key and value of the row that holds a backup's record."""
    return key_layout.table_backup(backup.backup_id), _encoder.encode(backup)


async def load(view: View) -> list[TableBackup]:
    """All backups of tables, sorted by their ids."""
    backups: list[TableBackup] = []
    start, end = key_layout.TABLE_BACKUPS
    while rows := await view.page(start, end, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES):
        backups.extend(_decoder.decode(each.value) for each in rows)
        start = rows[-1].key + b"\x00"
    return backups

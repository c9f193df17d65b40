"""The sink that copies a table's items into a backup.

A backup is the table's state at its positions in the logs, which the request for the backup stores.
So it contains every write that was answered before, and none that came later. A copy that was
interrupted starts over, for the same state.
"""

from __future__ import annotations

from collections.abc import Sequence

from dynactor.actors.followers.sink import SnapshotSink
from dynactor.model.tables.table_backup import TableBackup
from dynactor.storage import codec, key_layout
from dynactor.storage.store import Row


class BackupCopy(SnapshotSink):
    """Copies rows as they are, and counts items and their sizes as DynamoDB counts them."""

    def __init__(self, backup: TableBackup) -> None:
        self.item_count = 0
        self.size_bytes = 0
        self._rows_id = backup.rows_id
        self._prefix = key_layout.row_prefix(backup.rows_id)

    @property
    def target(self) -> tuple[bytes, bytes]:
        """All rows of the backup."""
        return key_layout.table_range(self._rows_id)

    def start(self) -> None:
        """Set the counts to zero."""
        self.item_count = self.size_bytes = 0

    def key(self, position: bytes) -> bytes:
        """The key of an item's row in the backup."""
        return self._prefix + position

    def puts(self, rows: Sequence[Row]) -> list[tuple[bytes, bytes]]:
        """The rows under the backup's own prefix."""
        self.item_count += len(rows)
        self.size_bytes += sum(codec.decode(row.value).size_bytes for row in rows)
        return [(self._prefix + position, value) for position, value in rows]

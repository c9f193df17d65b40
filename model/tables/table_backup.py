"""A backup of one table, as DynamoDB's own operations make them.

It belongs to the database and outlives its table. Not to be confused with a copy of the whole data
directory (``dynactor.storage.directory_backups``).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from dynactor.model.tables.table import TableDefinition

# One that is deleted is no more; DELETED is shown in the answer that deletes it.
TableBackupStatus: TypeAlias = Literal["CREATING", "AVAILABLE"]

_TIME_DIGITS: Final = 17


class TableBackupId(NamedTuple):
    """What names a backup: the table that it was made of, and a text that begins with its time.

    Such ids sort by table, and for one table by time.
    """

    table_name: str
    label: str


def label_of(epoch_milliseconds: int, suffix: str) -> str:
    """The end of a backup's ARN: its time with leading zeros, and what makes it unique.

    Source: the examples of the API reference.
    """
    return f"{epoch_milliseconds:0{_TIME_DIGITS}}-{suffix}"


class TableBackup(Struct, frozen=True):
    """All that is known of a backup but its items.

    ``rows_id`` stands where a table's id does in the keys of its items. ``definition`` is the
    source's as it was when the backup was asked for. ``size_bytes`` and ``item_count`` are the
    source's until the backup is AVAILABLE, and then its own.
    """

    label: str
    name: str
    rows_id: int
    definition: TableDefinition
    created_epoch_seconds: float
    item_count: int
    size_bytes: int
    status: TableBackupStatus = "CREATING"

    @property
    def backup_id(self) -> TableBackupId:
        """What names it."""
        return TableBackupId(self.definition.name, self.label)

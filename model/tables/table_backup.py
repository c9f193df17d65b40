"""A backup of one table, created by DynamoDB's own operations.

The backup belongs to the database and survives the deletion of its table. A copy of the whole data
directory is a different kind of backup (``dynactor.storage.directory_backups``).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from dynactor.model.definitions.table import TableDefinition
from dynactor.model.limits import SYSTEM_BACKUP_SECONDS

# A deleted backup no longer exists; only the answer of its deletion shows DELETED.
TableBackupStatus: TypeAlias = Literal["CREATING", "AVAILABLE"]

_TIME_DIGITS: Final = 14
SYSTEM_SUFFIX: Final = "00000000"


class TableBackupId(NamedTuple):
    """The identity of a backup: its source table, and a label that begins with its time.

    Such ids sort by table, then by time.
    """

    table_name: str
    label: str


def backup_label(epoch_milliseconds: int, suffix: str) -> str:
    """The end of a backup's ARN: its time with leading zeros, and a unique suffix.

    Source: measured on AWS in October 2026. Stored backups may have 17 digits.
    """
    return f"{epoch_milliseconds:0{_TIME_DIGITS}}-{suffix}"


class TableBackup(Struct, frozen=True):
    """A backup's metadata: everything except its items.

    ``rows_id`` replaces the table's id in the keys of the copied rows. ``definition`` is the
    source's at the time of the request. ``size_bytes`` and ``item_count`` describe the source until
    the backup is AVAILABLE, and then the backup.
    """

    label: str
    name: str
    rows_id: int
    definition: TableDefinition
    created_epoch_seconds: float
    item_count: int
    size_bytes: int
    status: TableBackupStatus = "CREATING"
    # Made for an export or for a restore to a point in time; clients don't see the backup.
    is_internal: bool = False
    # The time whose state the backup has, if that is not the time of the request.
    state_epoch_us: int | None = None
    # With it, the backup has the changes from ``state_epoch_us`` to this time, and no items.
    changes_until_us: int | None = None
    # A deleted table's items, if it had point-in-time recovery.
    is_system: bool = False

    @property
    def expires_epoch_seconds(self) -> float | None:
        """When the backup is deleted; None if it is kept."""
        if not self.is_system:
            return None
        return self.created_epoch_seconds + SYSTEM_BACKUP_SECONDS

    @property
    def backup_id(self) -> TableBackupId:
        """The backup's identity."""
        return TableBackupId(self.definition.name, self.label)


def is_restoring(definition: TableDefinition, backup: TableBackup) -> bool:
    """Whether a table still receives the items of a backup."""
    restoration = definition.restoration
    return (
        restoration is not None
        and restoration.phase in ("COPYING", "ITEMS")
        and restoration.backup_rows_id == backup.rows_id
    )

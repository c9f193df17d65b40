"""The copies that make backups of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from dynactor.actors.backups.table_backup_copy import BackupCopy
from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.changes_copy import ChangesCopy
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.sink import ChangeOrder, Contract, Gap
from dynactor.actors.followers.table_copy import TableCopy
from dynactor.actors.table.followers import Subscription
from dynactor.model.tables.table_backup import (
    TableBackup,
)
from dynactor.storage import key_layout
from dynactor.storage.store import Store
from dynactor.storage.subscriber_names import table_backup_subscriber


def backup_subscriber(backup: TableBackup) -> bytes:
    """The name of a backup's copy in its checkpoints."""
    return table_backup_subscriber(backup.definition.table_id, backup.rows_id)


class PastState(NamedTuple):
    """A time, and the positions of a table's logs at that time, by partition number.

    With ``until_us`` it stands for the changes after it, before that time.
    """

    epoch_us: int
    positions: Mapping[int, int]
    until_us: int | None = None


class KeptLogs:
    """Keeps a table's logs for a backup. The copy reads them from the store."""

    subscription = Subscription.ALL
    contract = Contract(ChangeOrder.NONE, Gap.END, trim_delay_bytes=None)

    def split(self, parent: int, children: list[ChangeFeed]) -> None:
        """Do nothing: the copy reads the logs that exist after its last page."""

    async def close(self) -> None:
        """Do nothing: the copy continues if the catalog is only loaded again."""


class CopyRun:
    """The copy that makes a backup; ``over`` is called when it has ended or failed."""

    def __init__(self, backup: TableBackup, store: Store, pacing: Pacing) -> None:
        self.rows = BackupCopy(backup)
        self.failure: str | None = None
        self.is_over = False
        self.over: Callable[[], None] | None = None
        until_us = backup.changes_until_us
        copy = TableCopy if until_us is None else partial(ChangesCopy, until_us=until_us)
        self.actor = copy(
            f"backup {backup.name} of {backup.definition.name}",
            backup.definition,
            backup_subscriber(backup),
            self.rows,
            store,
            cursor_key=key_layout.filling_cursor(backup.rows_id),
            ended=self._end,
            failed=self._fail,
            pacing=pacing,
            state_epoch_us=backup.state_epoch_us,
        )

    def _end(self) -> None:
        self.is_over = True
        if self.over is not None:
            self.over()

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._end()

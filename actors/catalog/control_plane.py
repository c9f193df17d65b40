"""The door of the control plane: what requests read of it without asking the database's actor.

The actor alone changes streams, destinations, replays, backups of tables and splits; a change is a
message, asked through its ``Ref``. A read here takes no turn in its mailbox. It shows frozen values
as they are at this moment, so nobody changes the actor's state through them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from dynactor.actors.derived.kafka.relay_progress import RelayProgress
from dynactor.actors.derived.kafka.replay_progress import ReplayProgress
from dynactor.actors.splitting.splits import SplitReason
from dynactor.actors.table.table import Table
from dynactor.model.tables.table import StreamingDestination
from dynactor.model.tables.table_backup import TableBackup, TableBackupId
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.shard import Shard, Stream


class StreamReads(Protocol):
    """The streams, and their durable records."""

    def all(self) -> Sequence[Stream]:
        """The streams that can be read, by table and label."""
        ...

    def find(self, table_name: str, label: str) -> Stream | None:
        """The stream of that table with that label."""
        ...

    def tail(self, shard: Shard) -> int:
        """The counter of the last durable change that a shard can show."""
        ...

    async def read(
        self, shard: Shard, after: int, *, max_records: int, max_bytes: int
    ) -> Sequence[ChangeRecord]:
        """The first durable records of a shard with counters above ``after``."""
        ...


class DestinationReads(Protocol):
    """The Kafka destinations of tables."""

    def status_description(self, table: Table, destination: StreamingDestination) -> str | None:
        """A description of a destination's state, with the reason if it can't be reached."""
        ...

    async def progress(
        self, table: Table, destination: StreamingDestination
    ) -> RelayProgress | None:
        """How far a destination's relay has come; None if it has none."""
        ...


class ReplayReads(Protocol):
    """The replays of tables' changes."""

    def all(self) -> Sequence[ReplayProgress]:
        """The jobs, the newest last."""
        ...

    def find(self, replay_id: str) -> ReplayProgress:
        """A job.

        Raises:
            ResourceNotFoundException: there is none, or it ended long ago.
        """
        ...


class BackupReads(Protocol):
    """The backups of tables."""

    @property
    def backups(self) -> Sequence[TableBackup]:
        """The backups, the oldest first."""
        ...

    def find(self, backup_id: TableBackupId) -> TableBackup | None:
        """The backup of that id."""
        ...


class SplitReads(Protocol):
    """The splits of partitions."""

    @property
    def splits(self) -> Mapping[SplitReason, int]:
        """How many partitions were split since the server started, by reason."""
        ...

    def growing(self, table: Table) -> tuple[int, ...]:
        """The ids of a table's indexes, 0 for itself, that have too few partitions."""
        ...


class ControlPlane(NamedTuple):
    """The door: all that may be read."""

    streams: StreamReads
    destinations: DestinationReads
    replays: ReplayReads
    table_backups: BackupReads
    splits: SplitReads

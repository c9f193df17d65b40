"""The read side of the control plane, which bypasses the database actor's mailbox.

Only the actor changes streams, destinations, replays, backups of tables, exports, imports, bulk
operations and splits; a change is a message through its ``Ref``. Reads here wait for no mailbox.
They return frozen values of this moment, so no reader can change the actor's state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from dynactor.actors.derived.kafka.relay_progress import RelayProgress
from dynactor.actors.derived.kafka.replay_progress import ReplayProgress
from dynactor.actors.splitting.splits import SplitReason
from dynactor.actors.table.table import Table
from dynactor.actors.transfers.uploads import Uploads
from dynactor.model.definitions.table import StreamingDestination
from dynactor.model.tables.table_backup import TableBackup, TableBackupId
from dynactor.model.transfers.bulk_operation import BulkOperation
from dynactor.model.transfers.table_export import TableExport
from dynactor.model.transfers.table_import import TableImport
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.shard import Shard, Stream


class StreamReads(Protocol):
    """The streams, and their durable records."""

    def all(self) -> Sequence[Stream]:
        """The readable streams, by table and label."""
        ...

    async def stored_names(self) -> Sequence[tuple[str, str]]:
        """The tables and labels of all streams, also of tables that have another home."""
        ...

    def find(self, table_name: str, label: str) -> Stream | None:
        """The stream of this table with this label."""
        ...

    def tail(self, shard: Shard) -> int:
        """The counter of the last durable change that a shard can show."""
        ...

    async def read(
        self, shard: Shard, after: int, *, max_records: int, max_bytes: int
    ) -> Sequence[ChangeRecord]:
        """The first durable records of a shard with counters above ``after``."""
        ...

    async def records(
        self, stream: Stream, shard: Shard, after: int, *, max_records: int, max_bytes: int
    ) -> Sequence[ChangeRecord]:
        """The records for a client; raises if the client would skip deleted records.

        Raises:
            TrimmedDataAccessException: records after this counter were deleted.
            ResourceNotFoundException: the shard was forgotten.
        """
        ...


class DestinationReads(Protocol):
    """The Kafka destinations of tables."""

    def status_description(self, table: Table, destination: StreamingDestination) -> str | None:
        """A description of a destination's state, with the reason if it can't be reached."""
        ...

    async def progress(
        self, table: Table, destination: StreamingDestination
    ) -> RelayProgress | None:
        """The progress of a destination's relay; None if it has no relay."""
        ...


class ReplayReads(Protocol):
    """The replays of tables' changes."""

    def all(self) -> Sequence[ReplayProgress]:
        """All replays, the newest last."""
        ...

    def find(self, replay_id: str) -> ReplayProgress:
        """The replay with this id.

        Raises:
            ResourceNotFoundException: the replay does not exist, or ended long ago.
        """
        ...


class BackupReads(Protocol):
    """The backups of tables."""

    @property
    def backups(self) -> Sequence[TableBackup]:
        """The backups, the oldest first."""
        ...

    def find(self, backup_id: TableBackupId) -> TableBackup | None:
        """The backup with this id."""
        ...


class ExportReads(Protocol):
    """The exports of tables."""

    @property
    def exports(self) -> Sequence[TableExport]:
        """The exports of the last 90 days, the newest first."""
        ...

    def find(self, export_id: str) -> TableExport | None:
        """The export with this id, unless it was forgotten."""
        ...


class ImportReads(Protocol):
    """The imports of tables, and the files that clients upload for them."""

    uploads: Uploads

    async def error_log(self, import_id: str) -> bytes:
        """The error log of an import whose files were uploaded; raises ``BucketError``."""
        ...

    @property
    def imports(self) -> Sequence[TableImport]:
        """The imports of the last 90 days, the newest first, with their present counts."""
        ...

    def find(self, import_id: str) -> TableImport | None:
        """The import with this id, with its present counts, unless it was forgotten."""
        ...


class BulkReads(Protocol):
    """The bulk operations."""

    @property
    def operations(self) -> Sequence[BulkOperation]:
        """The operations of the last 90 days, the newest first, with their present counts."""
        ...

    def find(self, operation_id: str) -> BulkOperation | None:
        """The operation with this id, with its present counts, unless it was forgotten."""
        ...


class SplitReads(Protocol):
    """The splits of partitions."""

    @property
    def splits(self) -> Mapping[SplitReason, int]:
        """Number of partitions that were split since the server started, by reason."""
        ...

    def growing(self, table: Table) -> tuple[int, ...]:
        """The ids of a table's indexes, 0 for the table, that have too few partitions."""
        ...


class ControlPlane(NamedTuple):
    """The read interfaces of the parts that only the database's actor changes."""

    streams: StreamReads
    destinations: DestinationReads
    replays: ReplayReads
    table_backups: BackupReads
    splits: SplitReads
    exports: ExportReads
    imports: ImportReads
    bulk_operations: BulkReads

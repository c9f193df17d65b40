"""The definition of a table, and the part of it that UpdateTable may change."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import DAY_SECONDS, RECOVERY_DAYS

BillingMode: TypeAlias = Literal["PROVISIONED", "PAY_PER_REQUEST"]
TableStatus: TypeAlias = Literal["CREATING", "UPDATING", "ACTIVE", "DELETING"]
TableClass: TypeAlias = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]

IndexStatus: TypeAlias = Literal["CREATING", "UPDATING", "DELETING", "ACTIVE"]
TimeToLiveStatus: TypeAlias = Literal["ENABLING", "ENABLED", "DISABLING", "DISABLED"]
DestinationStatus: TypeAlias = Literal[
    "ENABLING", "ACTIVE", "UPDATING", "DISABLING", "DISABLED", "ENABLE_FAILED", "BROKEN"
]
CreationTimePrecision: TypeAlias = Literal["MILLISECOND", "MICROSECOND"]
StreamViewType: TypeAlias = Literal["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]
# The phases of a restored table: a copy of its source first, if it is restored to a point in time;
# then its items, and then its global indexes' entries.
RestorePhase: TypeAlias = Literal["COPYING", "ITEMS", "INDEXES", "DONE"]
ContributorInsightsMode: TypeAlias = Literal["ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"]

# Changes of a table, by DescribeTable's parts. An index is INDEX_BACKFILL from its backfill on.
ChangeKind: TypeAlias = Literal[
    "THROUGHPUT",
    "STREAM",
    "SSE",
    "TABLE_CLASS",
    "ON_DEMAND_THROUGHPUT",
    "WARM_THROUGHPUT",
    "INDEX_CREATION",
    "INDEX_BACKFILL",
    "INDEX_UPDATE",
    "INDEX_DELETION",
    "TABLE_DELETION",
]

TABLE_INDEX_ID = 0


class Throughput(Struct, frozen=True):
    """Provisioned units per second, and the epoch seconds of their last changes, if any."""

    read_units: int
    write_units: int
    last_increase_epoch_seconds: float | None = None
    last_decrease_epoch_seconds: float | None = None
    decreases_today: int = 0


class ContributorInsights(Struct, frozen=True):
    """Whether the busiest keys of a table or global index are recorded, and which.

    ``changed_epoch_seconds`` is when it was last enabled, disabled or given another mode.
    """

    enabled: bool
    mode: ContributorInsightsMode
    changed_epoch_seconds: float


class GlobalIndex(Struct, frozen=True):
    """A global secondary index of a table, and its state.

    ``backfilling`` is None unless the index was added to an existing table. Then it is False while
    resources are allocated, and True during the backfill (S182, S184, S207).
    """

    definition: IndexDefinition
    status: IndexStatus = "ACTIVE"
    backfilling: bool | None = None
    # 0 and 0 for an index of an on-demand table.
    throughput: Throughput = Throughput(0, 0)
    # The throughput that an update requests. It takes effect when the index leaves UPDATING.
    pending_throughput: Throughput | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None
    # The warm throughput that an update requests; see ``pending_throughput``.
    pending_warm_throughput: dict[str, Any] | None = None
    # The last setting; None if never set.
    contributor_insights: ContributorInsights | None = None

    @property
    def holds_entries(self) -> bool:
        """Whether writes maintain the index: not before its backfill, nor during its deletion."""
        return self.status != "DELETING" and not (
            self.status == "CREATING" and self.backfilling is False
        )


class StreamSettings(Struct, frozen=True):
    """A table's DynamoDB stream; ``label`` is the time it was enabled, unique for the table."""

    label: str
    view_type: StreamViewType
    enabled: bool = True


class TimeToLive(Struct, frozen=True):
    """The attribute that holds an item's expiry time (S116), and DynamoDB's status."""

    attribute_name: str
    status: TimeToLiveStatus
    # When it was last enabled or disabled.
    changed_epoch_seconds: float

    @property
    def deletes(self) -> bool:
        """Whether expired items are deleted."""
        return self.status in ("ENABLING", "ENABLED")


class StreamingDestination(Struct, frozen=True):
    """A Kafka topic for a table's changes. ``destination_id`` is never reused in the table."""

    destination_id: int
    topic: str
    status: DestinationStatus
    status_description: str | None = None
    precision: CreationTimePrecision = "MILLISECOND"
    # The topic's number of partitions when the server first reached the topic; None until then. It
    # stays the same, so that keys keep their Kafka partitions.
    partition_count: int | None = None
    # The destination was cut off, so consumers need a notice of the gap and a snapshot.
    needs_snapshot: bool = False
    # The table was written to before the destination existed, so its topic lacks earlier data.
    began_late: bool = False

    @property
    def publishes(self) -> bool:
        """Whether changes are recorded for the destination."""
        return self.status in ("ENABLING", "ACTIVE", "UPDATING")


class PointInTimeRecovery(Struct, frozen=True):
    """The window of times to which a table can be restored.

    Changes are recorded since ``since_epoch_seconds``, in the log of each partition after its
    position; a partition without a position began later. ``lists_changes``: changes are also listed
    by key. Recovery that an earlier version has enabled lists none.
    """

    since_epoch_seconds: float
    positions: dict[int, int]
    period_days: int = RECOVERY_DAYS
    lists_changes: bool = False

    def earliest_epoch_seconds(self, now_epoch_seconds: float) -> float:
        """The beginning of the window, which ends now."""
        period_seconds = self.period_days * DAY_SECONDS
        return max(self.since_epoch_seconds, now_epoch_seconds - period_seconds)


class Restoration(Struct, frozen=True):
    """The backup or import that a table was filled from, and the progress.

    ``backup_label`` and ``source_table`` name the backup, which may be deleted afterwards; its
    items are stored under ``backup_rows_id``. With an ``import_id`` there is no backup. With
    ``restored_to_epoch_seconds`` the backup is an internal one, of the source at that time.
    """

    source_table: str
    backup_label: str
    backup_rows_id: int
    began_epoch_seconds: float
    phase: RestorePhase = "ITEMS"
    import_id: str | None = None
    restored_to_epoch_seconds: float | None = None


class AttachedPolicy(Struct, frozen=True):
    """The resource policy of a table, or of its stream with a label; the text is JSON."""

    stream_label: str
    text: str
    revision_id: str


class TableDefinition(Struct, frozen=True):
    """A table's metadata: everything except its items.

    ``table_id`` is internal and never reused, so a table recreated under the same name shares no
    rows with the old one. ``uuid`` is the TableId that clients see.
    """

    name: str
    table_id: int
    uuid: str
    created_epoch_seconds: float
    attribute_definitions: tuple[KeyAttribute, ...]
    key_schema: KeySchema
    status: TableStatus = "ACTIVE"
    # The changes of settings in progress. ``pending_`` members take effect when they end.
    changing: tuple[ChangeKind, ...] = ()
    local_indexes: tuple[IndexDefinition, ...] = ()
    global_indexes: tuple[GlobalIndex, ...] = ()
    # The enabled stream, or the last one.
    stream: StreamSettings | None = None
    billing_mode: BillingMode = "PROVISIONED"
    # When the table last became on-demand; None if never.
    on_demand_since_epoch_seconds: float | None = None
    # When an update to on-demand in progress was requested; None without such an update.
    pending_on_demand_since_epoch_seconds: float | None = None
    # Times of the latest switches from provisioned to on-demand, as many as the limit counts.
    on_demand_switches: tuple[float, ...] = ()
    # 0 and 0 for an on-demand table, as DescribeTable shows it.
    throughput: Throughput = Throughput(0, 0)
    # The throughput that an update requests.
    pending_throughput: Throughput | None = None
    table_class: TableClass | None = None
    table_class_changed_epoch_seconds: float | None = None
    # Times of the latest changes of the class and of the encryption, as many as the limits count.
    table_class_changes: tuple[float, ...] = ()
    sse_changes: tuple[float, ...] = ()
    deletion_protection: bool = False
    # Members that are stored and returned unchanged (with their wire names).
    sse_specification: dict[str, Any] | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None
    # The warm throughput that an update requests.
    pending_warm_throughput: dict[str, Any] | None = None
    tags: tuple[tuple[str, str], ...] = ()
    policies: tuple[AttachedPolicy, ...] = ()
    # The id of the next index created on this table.
    next_index_id: int = 1
    # The last setting; None if never set.
    time_to_live: TimeToLive | None = None
    destinations: tuple[StreamingDestination, ...] = ()
    next_destination_id: int = 1
    # A replay publishes the table's changes again, and needs new changes to be recorded as well.
    is_replayed: bool = False
    # A backup is being created, and needs the changes since its moment to be recorded.
    is_backed_up: bool = False
    # The last setting; None if never set. Indexes have settings of their own.
    contributor_insights: ContributorInsights | None = None
    # None if the table was neither restored from a backup nor imported.
    restoration: Restoration | None = None
    # None while it is disabled.
    point_in_time_recovery: PointInTimeRecovery | None = None

    @property
    def indexes(self) -> list[IndexDefinition]:
        """The definitions of all indexes, local ones first."""
        return [*self.local_indexes, *(index.definition for index in self.global_indexes)]

    @property
    def is_allocating(self) -> bool:
        """Whether a global index is in its first phase, in which the table is UPDATING."""
        return any(index.backfilling is False for index in self.global_indexes)

    @property
    def records_changes(self) -> bool:
        """Whether each write adds a change record, because the table has followers.

        The items that a restore puts add none, because they are the table's initial content.
        """
        return self.restore_phase not in ("COPYING", "ITEMS") and (
            bool(self.global_indexes)
            or (self.stream is not None and self.stream.enabled)
            or (self.time_to_live is not None and self.time_to_live.deletes)
            or any(destination.publishes for destination in self.destinations)
            or self.is_replayed
            or self.is_backed_up
            or self.point_in_time_recovery is not None
        )

    @property
    def restore_phase(self) -> RestorePhase:
        """The phase of the restore, if the table is being restored."""
        return "DONE" if self.restoration is None else self.restoration.phase

    def global_index(self, name: str) -> GlobalIndex | None:
        """The global secondary index of that name, in any state."""
        for index in self.global_indexes:
            if index.definition.name == name:
                return index
        return None

    def local_index(self, name: str) -> IndexDefinition | None:
        """The local secondary index of that name."""
        for index in self.local_indexes:
            if index.name == name:
                return index
        return None

"""A table's definition: what CreateTable fixed and UpdateTable may change."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.indexes.index import IndexDefinition
from dynactor.model.keys.key import KeyAttribute, KeySchema

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
# What a table that is restored is given: its items, then the entries of its global indexes.
RestorePhase: TypeAlias = Literal["ITEMS", "INDEXES", "DONE"]
ContributorInsightsMode: TypeAlias = Literal["ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"]

TABLE_INDEX_ID = 0


class Throughput(Struct, frozen=True):
    """Provisioned capacity units per second, and when they last changed.

    Times are epoch seconds of domain time; None where it never happened.
    """

    read_units: int
    write_units: int
    last_increase_epoch_seconds: float | None = None
    last_decrease_epoch_seconds: float | None = None
    decreases_today: int = 0


class ContributorInsights(Struct, frozen=True):
    """Whether the busiest keys of a table or global index are recorded, and which.

    ``changed_epoch_seconds`` is when it was last switched on or off, or to another mode.
    """

    enabled: bool
    mode: ContributorInsightsMode
    changed_epoch_seconds: float


class GlobalIndex(Struct, frozen=True):
    """A global secondary index of a table, and the state it is in.

    ``backfilling`` is None but for an index that was added to a table: False while its
    resources are allocated, True while it is filled (S182, S184, S207).
    """

    definition: IndexDefinition
    status: IndexStatus = "ACTIVE"
    backfilling: bool | None = None
    # 0 and 0 for an index of an on-demand table.
    throughput: Throughput = Throughput(0, 0)
    # The throughput that an update asked for. It takes effect when the index leaves UPDATING.
    pending_throughput: Throughput | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None
    # As it was last set; None if it never was.
    contributor_insights: ContributorInsights | None = None

    @property
    def holds_entries(self) -> bool:
        """Whether writes are carried into it: not before it is filled, not while it goes."""
        return self.status != "DELETING" and not (
            self.status == "CREATING" and self.backfilling is False
        )


class StreamSettings(Struct, frozen=True):
    """A table's DynamoDB stream; ``label`` is the time it was enabled, unique for the table."""

    label: str
    view_type: StreamViewType
    enabled: bool = True


class TimeToLive(Struct, frozen=True):
    """Which attribute tells when an item of a table expires (S116); ``status`` as DynamoDB's."""

    attribute_name: str
    status: TimeToLiveStatus
    # When it was last switched on or off.
    changed_epoch_seconds: float

    @property
    def deletes(self) -> bool:
        """Whether expired items are deleted."""
        return self.status in ("ENABLING", "ENABLED")


class StreamingDestination(Struct, frozen=True):
    """A Kafka topic to which a table's changes are published.

    ``destination_id`` is the table's number for it, never used again.
    """

    destination_id: int
    topic: str
    status: DestinationStatus
    status_description: str | None = None
    precision: CreationTimePrecision = "MILLISECOND"
    # Of the topic when it was first reached: keys keep their Kafka partitions. None before that.
    partition_count: int | None = None
    # It was cut off: it is to be told of the gap and given every item before what comes next.
    needs_snapshot: bool = False
    # The table was written to before it began: what its topic holds is no earlier table's.
    began_late: bool = False

    @property
    def publishes(self) -> bool:
        """Whether changes are recorded for it."""
        return self.status in ("ENABLING", "ACTIVE", "UPDATING")


class Restoration(Struct, frozen=True):
    """Which backup a table was made from, and how far it is with that.

    ``backup_label`` and ``source_table`` name the backup, which may be deleted afterwards; its
    items stand under ``backup_rows_id``.
    """

    source_table: str
    backup_label: str
    backup_rows_id: int
    began_epoch_seconds: float
    phase: RestorePhase = "ITEMS"


class TableDefinition(Struct, frozen=True):
    """All that is known of a table but its items.

    ``table_id`` is the store's number for it, never used again, so that a table made again
    under the same name has nothing of the old one; ``uuid`` is the TableId that clients see.
    """

    name: str
    table_id: int
    uuid: str
    created_epoch_seconds: float
    attribute_definitions: tuple[KeyAttribute, ...]
    key_schema: KeySchema
    status: TableStatus = "ACTIVE"
    local_indexes: tuple[IndexDefinition, ...] = ()
    global_indexes: tuple[GlobalIndex, ...] = ()
    # The stream that is enabled now, or was last.
    stream: StreamSettings | None = None
    billing_mode: BillingMode = "PROVISIONED"
    # When the table last became on-demand; None for one that never was.
    on_demand_since_epoch_seconds: float | None = None
    # The same of an update to on-demand that is not over.
    pending_on_demand_since_epoch_seconds: float | None = None
    # The latest switches from provisioned to on-demand, as many as are counted.
    on_demand_switches: tuple[float, ...] = ()
    # 0 and 0 for an on-demand table, as DescribeTable shows it.
    throughput: Throughput = Throughput(0, 0)
    # The throughput that an update asked for. It takes effect when the table leaves UPDATING.
    pending_throughput: Throughput | None = None
    table_class: TableClass | None = None
    table_class_changed_epoch_seconds: float | None = None
    deletion_protection: bool = False
    # Members that are stored and shown back as they were given (on the wire's names).
    sse_specification: dict[str, Any] | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None
    tags: tuple[tuple[str, str], ...] = ()
    # The id that the next index made on this table gets.
    next_index_id: int = 1
    # As it was last set; None if it never was.
    time_to_live: TimeToLive | None = None
    destinations: tuple[StreamingDestination, ...] = ()
    next_destination_id: int = 1
    # A job publishes its changes once more, and needs what comes meanwhile.
    is_replayed: bool = False
    # As it was last set; None if it never was. Indexes have their own.
    contributor_insights: ContributorInsights | None = None
    # None for a table that was not made from a backup.
    restoration: Restoration | None = None

    @property
    def indexes(self) -> list[IndexDefinition]:
        """The definitions of all indexes, local ones first."""
        return [*self.local_indexes, *(index.definition for index in self.global_indexes)]

    @property
    def records_changes(self) -> bool:
        """Whether anybody follows the table's changes: then each write leaves a record.

        Nobody does while items come from a backup: those are what a table begins with.
        """
        return self.restore_phase != "ITEMS" and (
            bool(self.global_indexes)
            or (self.stream is not None and self.stream.enabled)
            or (self.time_to_live is not None and self.time_to_live.deletes)
            or any(destination.publishes for destination in self.destinations)
            or self.is_replayed
        )

    @property
    def restore_phase(self) -> RestorePhase:
        """What the table is given of a backup at this moment."""
        return "DONE" if self.restoration is None else self.restoration.phase

    def global_index(self, name: str) -> GlobalIndex | None:
        """The global secondary index of that name, whatever its state."""
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

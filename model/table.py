"""A table's definition: what CreateTable fixed and UpdateTable may change."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from model.index import IndexDefinition
from model.key import KeyAttribute, KeySchema

BillingMode: TypeAlias = Literal["PROVISIONED", "PAY_PER_REQUEST"]
TableStatus: TypeAlias = Literal["CREATING", "UPDATING", "ACTIVE", "DELETING"]
TableClass: TypeAlias = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]

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
    billing_mode: BillingMode = "PROVISIONED"
    # When the table last became on-demand; None for one that never was.
    on_demand_since_epoch_seconds: float | None = None
    # 0 and 0 for an on-demand table, as DescribeTable shows it.
    throughput: Throughput = Throughput(0, 0)
    table_class: TableClass | None = None
    table_class_changed_epoch_seconds: float | None = None
    deletion_protection: bool = False
    # Members that are stored and shown back as they were given (on the wire's names).
    sse_specification: dict[str, Any] | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None
    resource_policy: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    # The id that the next index made on this table gets.
    next_index_id: int = 1

    def local_index(self, name: str) -> IndexDefinition | None:
        """The local secondary index of that name."""
        for index in self.local_indexes:
            if index.name == name:
                return index
        return None

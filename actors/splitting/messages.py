"""The messages about splits to the database's actor, and the tables that can be split."""

from __future__ import annotations

from typing import Literal, TypeAlias

from dynactor.actors.runtime.mailbox import Message
from dynactor.model.definitions.table import TABLE_INDEX_ID, TableDefinition

# "throughput": the table has more units than its partitions can serve.
SplitReason: TypeAlias = Literal["size", "heat", "throughput", "asked for"]


class SplitPartition(Message[tuple[int, int]], frozen=True):
    """Split a partition of a table, or of one of its global indexes; the reply is its children.

    The second child starts at the position ``at``. ``share`` is the approximate part of the
    partition's bytes before ``at``; ``reason`` is for logs and metrics.
    """

    name: str
    number: int
    at: bytes
    share: float = 0.5
    index_id: int = TABLE_INDEX_ID
    reason: SplitReason = "asked for"


class GrowTable(Message[None], frozen=True):
    """A table or one of its indexes has fewer partitions than its throughput needs."""

    table_id: int
    name: str


def is_settled(definition: TableDefinition) -> bool:
    """Whether partitions may be split now: not while the table or a follower is in a transition."""
    settings = definition.time_to_live
    return (
        definition.status == "ACTIVE"
        and all(
            index.status == "ACTIVE" and index.backfilling is None
            for index in definition.global_indexes
        )
        and (settings is None or settings.status in ("ENABLED", "DISABLED"))
        and all(
            destination.status in ("ACTIVE", "DISABLED", "ENABLE_FAILED", "BROKEN")
            for destination in definition.destinations
        )
    )

"""Positions in the shards of a stream: the readable shards, and gaps from deleted records. Pure.

A shard is read after its parent, so the changes of each item are read in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from dynactor.api.commands.tables.transfer_failed import TransferFailed

# A shard as DescribeStream shows it.
ListedShard: TypeAlias = Mapping[str, Any]


class RecordsDeleted(TransferFailed):
    """The stream has deleted records that were not read yet."""

    def __init__(self) -> None:
        super().__init__("The stream has deleted records that were not read yet")


class ShardPosition(Struct):
    """The next record to read: the one after ``sequence_number``, or that one itself.

    ``is_read`` says whether the record of the number is read. A shard starts with its first number,
    which no record may have yet.
    """

    shard_id: str
    sequence_number: str
    parent_id: str | None = None
    is_read: bool = False
    has_ended: bool = False

    def iterator_request(self, stream_arn: str) -> dict[str, Any]:
        """The members of GetShardIterator for this position."""
        return {
            "StreamArn": stream_arn,
            "ShardId": self.shard_id,
            "ShardIteratorType": (
                "AFTER_SEQUENCE_NUMBER" if self.is_read else "AT_SEQUENCE_NUMBER"
            ),
            "SequenceNumber": self.sequence_number,
        }

    def advance(self, sequence_number: str) -> None:
        """Move behind a record."""
        self.sequence_number, self.is_read = sequence_number, True


def first_positions(listed: Iterable[ListedShard]) -> dict[str, ShardPosition]:
    """The positions of a copy that scans its table from now on.

    A closed shard has ended for the copy, because the scan sees its changes.
    """
    positions = {}
    for shard in listed:
        position = _at_start(shard)
        position.has_ended = "EndingSequenceNumber" in shard["SequenceNumberRange"]
        positions[position.shard_id] = position
    return positions


def readable(positions: Mapping[str, ShardPosition]) -> list[ShardPosition]:
    """The shards that have not ended and whose parents have."""
    return [
        position
        for position in positions.values()
        if not position.has_ended
        and (
            position.parent_id is None
            or position.parent_id not in positions
            or positions[position.parent_id].has_ended
        )
    ]


def adopt(positions: dict[str, ShardPosition], listed: Iterable[ListedShard]) -> None:
    """Add new shards of a listing, and forget missing ended ones; raises ``RecordsDeleted``."""
    shards = {shard["ShardId"]: shard for shard in listed}
    for position in positions.values():
        if not position.has_ended and position.shard_id not in shards:
            raise RecordsDeleted
    for shard_id, shard in shards.items():
        if shard_id in positions:
            continue
        parent_id = shard.get("ParentShardId")
        if parent_id is not None and parent_id not in positions and parent_id not in shards:
            # Every new shard continues a known one, so its parent was opened and deleted unread.
            raise RecordsDeleted
        positions[shard_id] = _at_start(shard)
    for shard_id in [each for each in positions if each not in shards]:
        del positions[shard_id]


def _at_start(shard: ListedShard) -> ShardPosition:
    return ShardPosition(
        shard["ShardId"],
        shard["SequenceNumberRange"]["StartingSequenceNumber"],
        shard.get("ParentShardId"),
    )

"""DynamoDB streams and their shards, which show parts of the partitions' logs.

A shard shows a part of one partition's log under one stream label. Rolling a shard or enabling a
stream again only changes which part is shown, so it doesn't affect the logs' followers. When a
partition is split, its log ends, and the shard that shows it gets two children.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import md5
from typing import Annotated, Final

from msgspec import Struct, structs

from dynactor.model.definitions.table import StreamViewType
from dynactor.model.keys.key import KeySchema
from dynactor.model.limits import DAY_SECONDS
from dynactor.model.option import Option, OptionGroup
from dynactor.streams.sequence_number import SequenceNumber

_MILLISECONDS: Final = 1_000
_ID_HEX_DIGITS: Final = 8


class ShardSettings(Struct, frozen=True):
    """The time that an open shard grows, and the retention of records."""

    shard_roll_seconds: Annotated[float, Option("--shard-roll-seconds", OptionGroup.TEST_TIMES)] = (
        4 * 60 * 60
    )
    """Age at which a shard of a stream is closed and continued by another one."""

    retention_seconds: Annotated[
        float, Option("--stream-retention-seconds", OptionGroup.TEST_TIMES)
    ] = DAY_SECONDS
    """Seconds that stream records can be read."""


class Shard(Struct, frozen=True):
    """The records of one partition with counters above ``after``, up to ``last`` once closed.

    Records up to ``trimmed`` are deleted. Times are epoch seconds of domain time.
    """

    shard_id: str
    partition_number: int
    after: int
    opened_epoch_seconds: float
    last: int | None = None
    closed_epoch_seconds: float | None = None
    parent_id: str | None = None
    trimmed: int = 0

    @property
    def starting_sequence_number(self) -> SequenceNumber:
        """The first sequence number that belongs to the shard, even if it has no record."""
        return SequenceNumber(self.partition_number, self.after + 1)

    @property
    def ending_sequence_number(self) -> SequenceNumber | None:
        """The last number that belongs to the shard; None while the shard is open."""
        if self.last is None:
            return None
        return SequenceNumber(self.partition_number, max(self.last, self.after + 1))

    @property
    def horizon(self) -> int:
        """The counter before the shard's oldest readable record."""
        return max(self.after, self.trimmed)


class Stream(Struct, frozen=True):
    """One stream of a table, from its enabling until a day after its end."""

    table_name: str
    table_id: int
    label: str
    view_type: StreamViewType
    key_schema: KeySchema
    created_epoch_seconds: float
    shards: tuple[Shard, ...]
    disabled_epoch_seconds: float | None = None

    def shard(self, shard_id: str) -> Shard | None:
        """The shard with that id."""
        for shard in self.shards:
            if shard.shard_id == shard_id:
                return shard
        return None


def shard_id(label: str, partition_number: int, after: int, opened_epoch_seconds: float) -> str:
    """A shard's id: ``shardId-``, its creation time (20 digits, in milliseconds), 8 hex digits.

    The hex digits depend on the shard's position in the log, so a shard and its parent have
    different ids even in the same millisecond.
    """
    milliseconds = int(opened_epoch_seconds * _MILLISECONDS)
    place = f"{label} {partition_number} {after}"
    unique = md5(place.encode(), usedforsecurity=False).hexdigest()
    return f"shardId-{milliseconds:020d}-{unique[:_ID_HEX_DIGITS]}"


def opened(stream: Stream, positions: Mapping[int, int], now_epoch_seconds: float) -> Stream:
    """A stream with a new shard for each partition, which starts after the given counter."""
    shards = tuple(
        Shard(
            shard_id(stream.label, partition_number, after, now_epoch_seconds),
            partition_number,
            after,
            now_epoch_seconds,
            trimmed=after,
        )
        for partition_number, after in positions.items()
    )
    return structs.replace(stream, shards=stream.shards + shards)


def disabled(stream: Stream, tails: Mapping[int, int], now_epoch_seconds: float) -> Stream:
    """The stream after it is disabled: its open shards end at these tails."""
    return structs.replace(
        stream,
        disabled_epoch_seconds=now_epoch_seconds,
        shards=tuple(
            shard
            if shard.last is not None
            else _closed(shard, tails[shard.partition_number], now_epoch_seconds)
            for shard in stream.shards
        ),
    )


def rolled(
    stream: Stream, tails: Mapping[int, int], now_epoch_seconds: float, after_seconds: float
) -> Stream:
    """A stream whose old shards with records end at these tails, each with a new child."""
    shards: list[Shard] = []
    for shard in stream.shards:
        tail = tails.get(shard.partition_number, 0)
        is_old = now_epoch_seconds - shard.opened_epoch_seconds >= after_seconds
        if shard.last is not None or not is_old or tail <= shard.after:
            shards.append(shard)
            continue
        shards.append(_closed(shard, tail, now_epoch_seconds))
        shards.append(
            Shard(
                shard_id(stream.label, shard.partition_number, tail, now_epoch_seconds),
                shard.partition_number,
                tail,
                now_epoch_seconds,
                parent_id=shard.shard_id,
                trimmed=tail,
            )
        )
    return structs.replace(stream, shards=tuple(shards))


def split(
    stream: Stream, parent: int, last: int, children: tuple[int, int], now_epoch_seconds: float
) -> Stream:
    """A stream whose open shard of a split partition is closed, with two children after it.

    The child shards show the child partitions, from the beginning of their logs.
    """
    shards: list[Shard] = []
    for shard in stream.shards:
        if shard.last is not None or shard.partition_number != parent:
            shards.append(shard)
            continue
        shards.append(_closed(shard, last, now_epoch_seconds))
        shards += [
            Shard(
                shard_id(stream.label, number, 0, now_epoch_seconds),
                number,
                0,
                now_epoch_seconds,
                parent_id=shard.shard_id,
            )
            for number in children
        ]
    return structs.replace(stream, shards=tuple(shards))


def trimmed(
    stream: Stream, up_to: Mapping[int, int], now_epoch_seconds: float, retention_seconds: float
) -> Stream:
    """A stream after its logs were trimmed, without shards closed before the retention time."""
    return structs.replace(
        stream,
        shards=tuple(
            structs.replace(shard, trimmed=_trimmed(shard, up_to.get(shard.partition_number, 0)))
            for shard in stream.shards
            if shard.closed_epoch_seconds is None
            or now_epoch_seconds - shard.closed_epoch_seconds < retention_seconds
        ),
    )


def _trimmed(shard: Shard, up_to: int) -> int:
    """The counter up to which a shard is trimmed, at most the shard's last counter."""
    return max(shard.trimmed, up_to if shard.last is None else min(up_to, shard.last))


def _closed(shard: Shard, last: int, now_epoch_seconds: float) -> Shard:
    return structs.replace(
        shard, last=max(last, shard.after), closed_epoch_seconds=now_epoch_seconds
    )


def stream_label(now_epoch_seconds: float) -> str:
    """A label for a stream that is enabled now: the time in UTC, with milliseconds."""
    now = datetime.fromtimestamp(now_epoch_seconds, tz=UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}"

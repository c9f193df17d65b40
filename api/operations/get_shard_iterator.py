"""GetShardIterator."""

from __future__ import annotations

from typing import Final, NoReturn

from msgspec import json

from dynactor.actors.phases.streams import TRIMMED, StreamRegistry
from dynactor.api.access import asks
from dynactor.api.answers.table_description import stream_arn
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import DYNAMODB_STREAMS, Call
from dynactor.api.requests.inputs import GetShardIteratorInput
from dynactor.api.requests.stream_arn import find_shard, find_stream
from dynactor.model.errors import TrimmedDataAccessException, ValidationException, invalid_value
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.streams import sequence_number, shard_iterator
from dynactor.streams.sequence_number import SequenceNumber
from dynactor.streams.shard import Shard
from dynactor.streams.shard_iterator import Cursor

_BY_NUMBER: Final = ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")
_MILLISECONDS: Final = 1_000


async def handle(call: Call[GetShardIteratorInput]) -> bytes:
    """Make an iterator for a position in a shard."""
    request, database = call.request, call.database
    now_epoch_seconds = database.clock.now_epoch_seconds()
    number = _number(request)
    commit_time_us = _commit_time_us(request, now_epoch_seconds)
    stream = find_stream(database, request.StreamArn)
    shard = find_shard(stream, request.ShardId)
    match request.ShardIteratorType:
        case "TRIM_HORIZON":
            after = shard.horizon
        case "LATEST":
            after = database.part(StreamRegistry).tail(shard)
        case "AT_TIMESTAMP":
            assert commit_time_us is not None
            after = await _counter_before(database.part(StreamRegistry), shard, commit_time_us)
        case _:
            assert number is not None
            after = _checked_counter(database.part(StreamRegistry), shard, number)
            if request.ShardIteratorType == "AT_SEQUENCE_NUMBER":
                after = min(after, number.counter - 1)
            if after < shard.horizon:
                raise TrimmedDataAccessException(TRIMMED)
    cursor = Cursor(
        stream_arn(database, stream.table_name, stream.label),
        shard.shard_id,
        after,
        int(now_epoch_seconds * _MILLISECONDS),
    )
    return json.encode({"ShardIterator": shard_iterator.encode(cursor)})


def _number(request: GetShardIteratorInput) -> SequenceNumber | None:
    """The sequence number of the request; None for types without one."""
    if request.ShardIteratorType not in _BY_NUMBER:
        if request.SequenceNumber is not None:
            _refuse("SequenceNumber should not be passed for this iterator type")
        return None
    number = sequence_number.parse(request.SequenceNumber or "")
    if number is None:
        _refuse("Invalid SequenceNumber")
    return number


def _commit_time_us(request: GetShardIteratorInput, now_epoch_seconds: float) -> int | None:
    """The time of the request; None for types without one."""
    if request.ShardIteratorType != "AT_TIMESTAMP":
        if request.Timestamp is not None:
            _refuse("Timestamp should not be passed for this iterator type")
        return None
    if request.Timestamp is None:
        _refuse("Invalid Timestamp")
    if request.Timestamp > now_epoch_seconds:
        _refuse("Timestamp should not be in the future")
    return int(request.Timestamp * MICROSECONDS_PER_SECOND)


def _refuse(fault: str) -> NoReturn:
    raise invalid_value(f"{fault}")


def _checked_counter(streams: StreamRegistry, shard: Shard, number: SequenceNumber) -> int:
    """The counter of a number that belongs to a shard.

    An empty shard's starting sequence number is the number of its first record, which does not
    exist yet. An iterator after that number returns this record when it exists.
    """
    tail = streams.tail(shard)
    in_log = number.partition_number == shard.partition_number
    if not in_log or not shard.after < number.counter <= max(tail, shard.after + 1):
        raise ValidationException("Invalid SequenceNumber for the shard")
    return min(number.counter, tail)


async def _counter_before(streams: StreamRegistry, shard: Shard, commit_time_us: int) -> int:
    """The counter before the first record of this time or later, found by bisection."""
    low, high = shard.horizon, streams.tail(shard)
    while low < high:
        middle = (low + high) // 2
        records = await streams.read(shard, middle, max_records=1, max_bytes=1)
        if not records or records[0].commit_time_us >= commit_time_us:
            high = middle
        else:
            low = records[0].sequence_number.counter
    return low


OPERATION = Operation(
    GetShardIteratorInput,
    handle,
    asks=asks.member("StreamArn"),
    effect=Effect.DESCRIBES,
    location=Location.HOME,
    service=DYNAMODB_STREAMS,
)

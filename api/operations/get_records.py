"""GetRecords."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import json, structs

from dynactor.actors.phases.streams import StreamRegistry
from dynactor.api.access import asks
from dynactor.api.answers.item_answers import array_member, joined
from dynactor.api.execution.operation import STREAM_FAULTS, Effect, Location, Operation
from dynactor.api.requests.call import DYNAMODB_STREAMS, Call
from dynactor.api.requests.inputs import GetRecordsInput
from dynactor.api.requests.stream_arn import find_shard, find_stream
from dynactor.model.definitions.table import StreamViewType
from dynactor.model.errors import ExpiredIteratorException, ValidationException, invalid_value
from dynactor.model.limits import GET_RECORDS, GET_RECORDS_BYTES, SHARD_ITERATOR_SECONDS
from dynactor.streams import shard_iterator
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.shard_iterator import Cursor
from dynactor.streams.stream_record import stream_record

_MILLISECONDS: Final = 1_000


async def handle(call: Call[GetRecordsInput]) -> bytes:
    """Return the records after an iterator, and the next iterator unless the shard has ended."""
    request, database = call.request, call.database
    limit = request.Limit or GET_RECORDS
    if limit > GET_RECORDS:
        raise invalid_value(f"Limit should be less than or equal to {GET_RECORDS}")
    now_epoch_ms = int(database.clock.now_epoch_seconds() * _MILLISECONDS)
    cursor = _cursor(request.ShardIterator, now_epoch_ms)
    stream = find_stream(database, cursor.stream_arn)
    shard = find_shard(stream, cursor.shard_id)
    changes = await database.part(StreamRegistry).records(
        stream, shard, cursor.after, max_records=limit, max_bytes=GET_RECORDS_BYTES
    )
    records = _page(changes, stream.view_type, database.settings.region)
    after = changes[len(records) - 1].sequence_number.counter if records else cursor.after
    members = [array_member(b"Records", records)]
    ended = shard.last is not None and (after >= shard.last or not records)
    if not ended:
        following = structs.replace(cursor, after=after, issued_epoch_ms=now_epoch_ms)
        members.append(b'"NextShardIterator":' + json.encode(shard_iterator.encode(following)))
    return joined(members)


def _cursor(text: str, now_epoch_ms: int) -> Cursor:
    cursor = shard_iterator.parse(text)
    if cursor is None:
        raise ValidationException("Invalid ShardIterator")
    if now_epoch_ms - cursor.issued_epoch_ms > SHARD_ITERATOR_SECONDS * _MILLISECONDS:
        raise ExpiredIteratorException("The provided iterator exceeds the maximum age allowed.")
    return cursor


def _page(changes: Sequence[ChangeRecord], view_type: StreamViewType, region: str) -> list[bytes]:
    """The first records that fit a page, at least one if any."""
    records: list[bytes] = []
    size_bytes = 0
    for change in changes:
        record = stream_record(change, view_type, region)
        size_bytes += record.size_bytes
        if records and size_bytes > GET_RECORDS_BYTES:
            break
        records.append(record.json)
    return records


OPERATION = Operation(
    GetRecordsInput,
    handle,
    asks=asks.member("ShardIterator"),
    effect=Effect.READS,
    location=Location.HOME,
    service=DYNAMODB_STREAMS,
    faults=STREAM_FAULTS,
)

"""The JSON of a change in DynamoDB Streams, as GetRecords returns it.

The images' stored JSON is included unchanged. Source: API reference, "Record" and "StreamRecord".
"""

from __future__ import annotations

from hashlib import md5
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import json

from dynactor.model.definitions.table import StreamViewType
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.model.values import item as items
from dynactor.streams.change_record import ChangeRecord, Origin

EventName: TypeAlias = Literal["INSERT", "MODIFY", "REMOVE"]

_SHOWS_NEW: Final = frozenset({"NEW_IMAGE", "NEW_AND_OLD_IMAGES"})
_SHOWS_OLD: Final = frozenset({"OLD_IMAGE", "NEW_AND_OLD_IMAGES"})
# Deletions by time to live have the service's identity; deletions by users have none.
_SERVICE: Final = b',"userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}'
_RECORD: Final = (
    b'{"eventID":"%b","eventName":"%b","eventVersion":"1.1","eventSource":"aws:dynamodb",'
    b'"awsRegion":%b,"dynamodb":{"ApproximateCreationDateTime":%d,"Keys":%b%b,'
    b'"SequenceNumber":"%b","SizeBytes":%d,"StreamViewType":"%b"}%b}'
)


class StreamRecord(NamedTuple):
    """A record's JSON, and its size as DynamoDB counts it: the keys and images that it shows."""

    json: bytes
    size_bytes: int


def event_name(record: ChangeRecord) -> EventName:
    """The kind of change to the item."""
    if record.old is None:
        return "INSERT"
    return "REMOVE" if record.new is None else "MODIFY"


def event_id(record: ChangeRecord) -> str:
    """A unique id of the change, the same in every read: 32 hexadecimal digits.

    It includes the time, because two servers may use the same counters.
    """
    change = f"{record.sequence_number.wire()} {record.commit_time_us}"
    return md5(change.encode(), usedforsecurity=False).hexdigest()


def stream_record(record: ChangeRecord, view_type: StreamViewType, region: str) -> StreamRecord:
    """The record of a change in a stream of this view type."""
    old, new = record.old, record.new
    size_bytes = items.size_bytes(record.key)
    images = b""
    if new is not None and view_type in _SHOWS_NEW:
        images = b',"NewImage":' + new.data
        size_bytes += new.size_bytes
    if old is not None and view_type in _SHOWS_OLD:
        images += b',"OldImage":' + old.data
        size_bytes += old.size_bytes
    parts = (
        event_id(record).encode(),
        event_name(record).encode(),
        json.encode(region),
        record.commit_time_us // MICROSECONDS_PER_SECOND,
        record.keys,
        images,
        record.sequence_number.wire().encode(),
        size_bytes,
        view_type.encode(),
        _SERVICE if record.origin is Origin.TTL else _author(record),
    )
    return StreamRecord(_RECORD % parts, size_bytes)


def _author(record: ChangeRecord) -> bytes:
    """A member that AWS does not have: the access key of the caller."""
    if not record.author:
        return b""
    return b',"dynactor":{"AccessKeyId":%b}' % json.encode(record.author)

"""The form of a change in DynamoDB Streams, as GetRecords answers it.

Source: API reference, "Record" and "StreamRecord".
"""

from __future__ import annotations

from hashlib import md5
from typing import Any, Final, Literal, TypeAlias

from model import item as items
from streams.change_record import ChangeRecord, Origin

ViewType: TypeAlias = Literal["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]
EventName: TypeAlias = Literal["INSERT", "MODIFY", "REMOVE"]

_EVENT_VERSION: Final = "1.1"
_MICROSECONDS: Final = 1_000_000
# Deletions by time to live carry the service's identity, those of users none.
_SERVICE: Final = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}


def event_name(record: ChangeRecord) -> EventName:
    """What happened to the item."""
    if record.old is None:
        return "INSERT"
    return "REMOVE" if record.new is None else "MODIFY"


def event_id(record: ChangeRecord) -> str:
    """A unique id of the change, the same whenever it is read: 32 hexadecimal digits."""
    number = record.sequence_number.wire().encode()
    return md5(number, usedforsecurity=False).hexdigest()


def stream_record(record: ChangeRecord, view_type: ViewType, region: str) -> dict[str, Any]:
    """The record of a change in a stream of this view type."""
    body: dict[str, Any] = {
        "ApproximateCreationDateTime": record.commit_time_us // _MICROSECONDS,
        "Keys": record.key,
        "SequenceNumber": record.sequence_number.wire(),
        "StreamViewType": view_type,
    }
    size_bytes = items.size_bytes(record.key)
    if record.new is not None and view_type in ("NEW_IMAGE", "NEW_AND_OLD_IMAGES"):
        body["NewImage"] = record.new.item
        size_bytes += record.new.size_bytes
    if record.old is not None and view_type in ("OLD_IMAGE", "NEW_AND_OLD_IMAGES"):
        body["OldImage"] = record.old.item
        size_bytes += record.old.size_bytes
    body["SizeBytes"] = size_bytes
    whole: dict[str, Any] = {
        "awsRegion": region,
        "dynamodb": body,
        "eventID": event_id(record),
        "eventName": event_name(record),
        "eventSource": "aws:dynamodb",
        "eventVersion": _EVENT_VERSION,
    }
    if record.origin is Origin.TTL:
        whole["userIdentity"] = _SERVICE
    return whole

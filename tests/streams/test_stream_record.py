"""The record of a change, as in GetRecords' answer, for each view type."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from dynactor.model.definitions.table import StreamViewType
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.streams.change_record import ChangeRecord, Origin
from dynactor.streams.sequence_number import SequenceNumber
from dynactor.streams.stream_record import event_id, stream_record
from tests.properties import strategies
from tests.support.streams.changes import change

KEY: Item = {"pk": {"S": "a"}}
OLD: Item = {"n": {"N": "1"}}
NEW: Item = {"n": {"N": "22"}, "é": {"S": 'ü"\\'}}


def decoded(record: ChangeRecord, view_type: StreamViewType = "NEW_AND_OLD_IMAGES") -> Any:
    return json.decode(stream_record(record, view_type, "eu-west-1").json)


def test_a_record_names_the_access_key_of_the_caller():
    record = change(KEY, OLD, NEW, author="AKIDAPP")
    assert decoded(record)["dynactor"] == {"AccessKeyId": "AKIDAPP"}


def test_a_modification_has_all_members_of_a_stream_record():
    record = change(KEY, OLD, NEW, SequenceNumber(2, 5))
    assert decoded(record) == {
        "eventID": event_id(record),
        "eventName": "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "eu-west-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_700_000_000,
            "Keys": KEY,
            "NewImage": KEY | NEW,
            "OldImage": KEY | OLD,
            "SequenceNumber": "000000000549755813893",
            # Keys 3; the new image 3 + 1 + 2 + 2 + 4, the old one 3 + 1 + 2.
            "SizeBytes": 21,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }


@pytest.mark.parametrize(
    ("view_type", "images"),
    [
        ("KEYS_ONLY", {}),
        ("NEW_IMAGE", {"NewImage": KEY | NEW}),
        ("OLD_IMAGE", {"OldImage": KEY | OLD}),
        ("NEW_AND_OLD_IMAGES", {"NewImage": KEY | NEW, "OldImage": KEY | OLD}),
    ],
)
def test_a_view_type_shows_its_images(view_type: StreamViewType, images: dict[str, Item]):
    body = decoded(change(KEY, OLD, NEW), view_type)["dynamodb"]
    assert {name: body[name] for name in ("NewImage", "OldImage") if name in body} == images
    assert body["StreamViewType"] == view_type


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [(None, {}, "INSERT"), ({}, {"n": {"N": "1"}}, "MODIFY"), ({}, None, "REMOVE")],
)
def test_an_event_is_named_by_its_images(old: Item | None, new: Item | None, name: str):
    assert decoded(change(KEY, old, new))["eventName"] == name


def test_only_a_deletion_by_time_to_live_has_an_identity():
    expired = decoded(change(KEY, {}, None, origin=Origin.TTL))
    assert expired["userIdentity"] == {
        "PrincipalId": "dynamodb.amazonaws.com",
        "Type": "Service",
    }
    assert "userIdentity" not in decoded(change(KEY, {}, None))


def test_an_event_id_belongs_to_the_change_and_the_server():
    record = change(KEY, {}, None)
    assert event_id(record) == event_id(change(KEY, {}, None))
    assert len(event_id(record)) == 32
    assert event_id(change(KEY, {}, None, SequenceNumber(1, 2))) != event_id(record)
    assert event_id(change(KEY, {}, None, commit_time_us=1)) != event_id(record)


images = st.one_of(st.none(), strategies.items)


@given(st.builds(change, st.builds(lambda key: {"pk": key}, strategies.strings), images, images))
def test_the_size_is_that_of_keys_and_images(record: ChangeRecord):
    made = stream_record(record, "NEW_AND_OLD_IMAGES", "us-east-1")
    body = json.decode(made.json)["dynamodb"]
    shown = [body[name] for name in ("Keys", "NewImage", "OldImage") if name in body]
    assert body["SizeBytes"] == made.size_bytes == sum(map(items.size_bytes, shown))

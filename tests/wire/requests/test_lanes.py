"""The client ``lanes``, which sends each request over both HTTP lanes, plain and compressed."""

from __future__ import annotations

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient


def test_a_large_item_is_the_same_over_both_lanes_plain_and_compressed(
    lanes: LanesClient, wire: WireClient, simple: str, pk: str
):
    item = {"pk": {"S": pk}, "text": {"S": "x" * 10_000}}
    wire("PutItem", {"TableName": simple, "Item": item})
    assert lanes("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}}) == {"Item": item}


def test_an_error_is_the_same_over_both_lanes_plain_and_compressed(lanes: LanesClient):
    assert lanes.refused("ListTables", {"Limit": "1"}) == (
        "SerializationException",
        "STRING_VALUE cannot be converted to Integer",
    )

"""The client that sends each request in every way."""

from __future__ import annotations

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient


def test_every_way_reads_the_same_large_item(
    lanes: LanesClient, wire: WireClient, simple: str, pk: str
):
    item = {"pk": {"S": pk}, "text": {"S": "x" * 10_000}}
    wire("PutItem", {"TableName": simple, "Item": item})
    assert lanes("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}}) == {"Item": item}


def test_every_way_reports_the_same_fault(lanes: LanesClient):
    assert lanes.refused("ListTables", {"Limit": "1"}) == (
        "SerializationException",
        "STRING_VALUE cannot be converted to Integer",
    )

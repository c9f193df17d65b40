"""ItemCollectionMetrics: the size of an item collection, if there are local indexes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient

pytestmark = pytest.mark.differs_from_dynamodb_local("it reports none")


def metrics(pk: str) -> dict[str, Any]:
    return {"ItemCollectionKey": {"pk": {"S": pk}}, "SizeEstimateRangeGB": [0.0, 1.0]}


def test_single_writes_report_the_collection(wire: WireClient, indexed: str, pk: str):
    key = {"pk": {"S": pk}, "sk": {"S": "s"}}
    members = {"TableName": indexed, "ReturnItemCollectionMetrics": "SIZE"}
    put = wire("PutItem", members | {"Item": key})
    update = wire("UpdateItem", members | {"Key": key})
    delete = wire("DeleteItem", members | {"Key": key})
    for answer in (put, update, delete):
        assert answer == {"ItemCollectionMetrics": metrics(pk)}


def test_nothing_is_reported_unless_requested(wire: WireClient, indexed: str, pk: str):
    item = {"pk": {"S": pk}, "sk": {"S": "s"}}
    request = {"TableName": indexed, "Item": item}
    assert wire("PutItem", request) == {}
    assert wire("PutItem", request | {"ReturnItemCollectionMetrics": "NONE"}) == {}


def test_a_table_without_local_indexes_has_no_collections(
    wire: WireClient, composite: str, pk: str
):
    item = {"pk": {"S": pk}, "sk": {"S": "s"}}
    request = {"TableName": composite, "Item": item, "ReturnItemCollectionMetrics": "SIZE"}
    assert wire("PutItem", request) == {}


def test_a_batch_reports_every_collection_it_wrote(wire: WireClient, indexed: str, pk: str):
    requests = [
        {"PutRequest": {"Item": {"pk": {"S": f"{pk}-{number}"}, "sk": {"S": "s"}}}}
        for number in range(3)
    ]
    request = {"RequestItems": {indexed: requests}, "ReturnItemCollectionMetrics": "SIZE"}
    answer = wire("BatchWriteItem", request)
    reported = answer["ItemCollectionMetrics"][indexed]
    assert sorted(reported, key=str) == [metrics(f"{pk}-{number}") for number in range(3)]

"""Tables of an earlier version are read unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.servers.upgraded import (
    Upgraded,
    Written,
    attribute_names,
    entries,
    in_order,
    indexes,
    scanned,
    written_by_6ee0983,
)

WRITTEN = written_by_6ee0983()
KEY_TABLES = [name for name in WRITTEN.requests if name.startswith("keys-")]
INDEXES = [
    (name, index["IndexName"])
    for name, request in WRITTEN.requests.items()
    for index in indexes(request)
]


def test_the_directory_has_keys_of_all_types():
    types = {
        tuple(
            next(
                each["AttributeType"]
                for each in request["AttributeDefinitions"]
                if each["AttributeName"] == name
            )
            for name in attribute_names(request)
        )
        for request in WRITTEN.requests.values()
    }
    assert types >= {(one,) for one in "SNB"} | {(one, two) for one in "SNB" for two in "SNB"}


def test_all_tables_are_listed(opened: Upgraded, written: Written):
    names = opened.wire("ListTables", {})["TableNames"]
    assert set(names) >= written.requests.keys()
    assert "Archive" not in names


@pytest.mark.parametrize("name", WRITTEN.requests)
def test_a_scan_returns_every_item_in_the_same_order(opened: Upgraded, written: Written, name: str):
    assert scanned(opened.wire, name, ConsistentRead=True) == written.items[name]


@pytest.mark.parametrize("name", WRITTEN.requests)
def test_every_item_is_found_by_its_key(opened: Upgraded, written: Written, name: str):
    for item in written.items[name]:
        answer = opened.wire("GetItem", {"TableName": name, "Key": written.key(name, item)})
        assert answer["Item"] == item


@pytest.mark.parametrize("name", [name for name in KEY_TABLES if len(name) == len("keys-XY")])
def test_a_query_gives_the_items_of_a_partition_key_in_their_order(
    opened: Upgraded, written: Written, name: str
):
    for partition in {str(item["pk"]): item["pk"] for item in written.items[name]}.values():
        expected = [item for item in written.items[name] if item["pk"] == partition]
        request = {
            "TableName": name,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": partition},
        }
        assert opened.wire("Query", request)["Items"] == expected
        from_second = {
            "KeyConditionExpression": "pk = :pk AND sk >= :sk",
            "ExpressionAttributeValues": {":pk": partition, ":sk": expected[1]["sk"]},
        }
        assert opened.wire("Query", request | from_second)["Items"] == expected[1:]


@pytest.mark.parametrize(("name", "index_name"), INDEXES)
def test_an_index_has_an_entry_of_every_item(
    opened: Upgraded, written: Written, name: str, index_name: str
):
    request = written.requests[name]
    (index,) = [each for each in indexes(request) if each["IndexName"] == index_name]
    found = scanned(opened.wire, name, IndexName=index_name)
    expected = entries(request, index, written.items[name])
    assert in_order(found) == expected
    counted = described(opened, name, index_name)["ItemCount"]
    assert counted == len(expected)


@pytest.mark.parametrize("name", WRITTEN.tables)
def test_a_table_is_described_as_before(opened: Upgraded, written: Written, name: str):
    now = opened.wire("DescribeTable", {"TableName": name})["Table"]
    for member, before in written.tables[name].items():
        if member.endswith("Indexes"):
            for each in before:
                shown = described(opened, name, each["IndexName"])
                assert each.items() <= shown.items()
        elif member == "AttributeDefinitions":
            # The index that was being deleted no longer exists.
            shown = {each["AttributeName"]: each for each in before}
            assert all(shown[each["AttributeName"]] == each for each in now[member])
        else:
            assert now[member] == before, member


def described(opened: Upgraded, name: str, index_name: str) -> dict[str, Any]:
    table = opened.wire("DescribeTable", {"TableName": name})["Table"]
    shown: dict[str, Any] = next(each for each in indexes(table) if each["IndexName"] == index_name)
    return shown


def test_definitions_equal_the_requested_ones(opened: Upgraded, written: Written):
    for name, request in written.requests.items():
        table = opened.wire("DescribeTable", {"TableName": name})["Table"]
        assert table["KeySchema"] == request["KeySchema"]
        asked = {index["IndexName"]: index for index in indexes(request)}
        shown = {index["IndexName"]: index for index in indexes(table)}
        assert shown.keys() == asked.keys()
        for index_name, index in asked.items():
            assert shown[index_name]["KeySchema"] == index["KeySchema"]
            assert shown[index_name]["Projection"] == index["Projection"]
        if units := request.get("ProvisionedThroughput"):
            assert units.items() <= table["ProvisionedThroughput"].items()


def test_settings_of_a_table_are_kept(opened: Upgraded, written: Written):
    arn = written.tables["Orders"]["TableArn"]
    assert opened.wire("ListTagsOfResource", {"ResourceArn": arn})["Tags"] == written.tags
    for before in written.contributor_insights:
        asked = {name: before[name] for name in ("TableName", "IndexName") if name in before}
        now = opened.wire("DescribeContributorInsights", asked)
        assert before.items() <= now.items()
    assert opened.wire.refused("DeleteTable", {"TableName": "Orders"}).type == "ValidationException"


def test_a_token_of_the_earlier_version_continues_its_page(opened: Upgraded, written: Written):
    handed_out = written.handed_out
    page = opened.wire("ExecuteStatement", handed_out["statement"])
    assert page["Items"] == handed_out["statement_items"]

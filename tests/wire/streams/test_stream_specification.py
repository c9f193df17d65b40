"""CreateTable and UpdateTable enable, disable and re-enable a table's stream."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import definition, table, unique_name, wait_until_active

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

VIEW_TYPES = ("KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES")
NO_VIEW = (
    "One or more parameter values were invalid: If stream is being enabled then UpdateViewType is "
    "required"
)
USELESS_VIEW = (
    "Invalid StreamViewType: Stream StreamEnabled was false but a StreamViewType was present."
)


def enabled(view_type: str = "NEW_IMAGE") -> dict[str, Any]:
    return {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": view_type}}


DISABLED = {"StreamSpecification": {"StreamEnabled": False}}


def update(wire: WireClient, name: str, members: dict[str, Any]) -> dict[str, Any]:
    """Change the table, wait until the change is complete, and return the answer's description."""
    description: dict[str, Any] = wire("UpdateTable", {"TableName": name, **members})[
        "TableDescription"
    ]
    wait_until_active(wire, name)
    return description


def check_stream(description: dict[str, Any], view_type: str) -> str:
    """Check a table's visible stream, and return its label."""
    assert description["StreamSpecification"] == enabled(view_type)["StreamSpecification"]
    label: str = description["LatestStreamLabel"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}", label)
    assert description["LatestStreamArn"] == f"{description['TableArn']}/stream/{label}"
    return label


@pytest.mark.parametrize("view_type", VIEW_TYPES)
def test_a_table_is_created_with_a_stream(wire: WireClient, view_type: str):
    with table(wire, "pk:S", **enabled(view_type)) as name:
        check_stream(wire("DescribeTable", {"TableName": name})["Table"], view_type)


def test_the_answer_shows_the_stream(wire: WireClient):
    request = definition("pk:S", **enabled())
    answer = wire("CreateTable", request)["TableDescription"]
    described = wait_until_active(wire, request["TableName"])
    assert check_stream(answer, "NEW_IMAGE") == described["LatestStreamLabel"]
    wire("DeleteTable", {"TableName": request["TableName"]})


@pytest.mark.parametrize("members", [{}, DISABLED])
def test_a_table_without_a_stream_shows_none(wire: WireClient, members: Any):
    with table(wire, "pk:S", **members) as name:
        described = wire("DescribeTable", {"TableName": name})["Table"]
        for member in ("StreamSpecification", "LatestStreamLabel", "LatestStreamArn"):
            assert member not in described


def test_a_stream_is_enabled_disabled_and_enabled_again(wire: WireClient):
    with table(wire, "pk:S") as name:
        first = check_stream(update(wire, name, enabled("KEYS_ONLY")), "KEYS_ONLY")
        described = update(wire, name, DISABLED)
        assert "StreamSpecification" not in described
        # The old stream can still be read.
        assert described["LatestStreamLabel"] == first
        described = wire("DescribeTable", {"TableName": name})["Table"]
        assert described["LatestStreamArn"].endswith(f"/stream/{first}")
        second = check_stream(update(wire, name, enabled("OLD_IMAGE")), "OLD_IMAGE")
        assert second > first


@differs_from_dynamodb_local("it does not name the table")
@pytest.mark.parametrize("view_type", ["NEW_IMAGE", "KEYS_ONLY"])
def test_a_stream_is_not_enabled_twice(wire: WireClient, view_type: str):
    with table(wire, "pk:S", **enabled()) as name:
        request = {"TableName": name, **enabled(view_type)}
        assert wire.refused("UpdateTable", request) == (
            "ValidationException",
            f"Table already has an enabled stream: TableName: {name}",
        )


def test_a_stream_that_is_not_enabled_is_not_disabled(wire: WireClient, simple: str):
    assert wire.refused("UpdateTable", {"TableName": simple, **DISABLED}) == (
        "ValidationException",
        "Table has no stream to disable",
    )
    request = {"TableName": unique_name("no-such-table"), **DISABLED}
    assert wire.refused("UpdateTable", request).type == "ResourceNotFoundException"


@differs_from_dynamodb_local("other words for a new table")
@pytest.mark.parametrize(
    ("specification", "of_new_table", "of_table"),
    [
        ({"StreamEnabled": True}, NO_VIEW, NO_VIEW),
        (
            {"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"},
            (
                "One or more parameter values were invalid: Table is being created with a stream "
                "disabled, UpdateViewType should not be specified"
            ),
            USELESS_VIEW,
        ),
    ],
)
def test_a_view_type_without_an_enabled_stream_is_refused(
    lanes: LanesClient, simple: str, specification: Any, of_new_table: str, of_table: str
):
    members = {"StreamSpecification": specification}
    requests = (
        ("CreateTable", definition("pk:S", **members), of_new_table),
        ("UpdateTable", {"TableName": simple, **members}, of_table),
    )
    for operation, request, message in requests:
        assert lanes.refused(operation, request) == ("ValidationException", message)


def test_a_change_of_both_throughput_and_stream_is_refused(wire: WireClient, simple: str):
    throughput = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    request = {"TableName": simple, "ProvisionedThroughput": throughput, **enabled()}
    assert wire.refused("UpdateTable", request).type == "ValidationException"


def test_a_recreated_table_does_not_have_the_stream_of_the_deleted_one(wire: WireClient):
    request = definition("pk:S", **enabled())
    name = request["TableName"]
    labels = set()
    for _ in range(2):
        wire("CreateTable", request)
        labels.add(wait_until_active(wire, name)["LatestStreamLabel"])
        wire("DeleteTable", {"TableName": name})
        while name in wire("ListTables", {"ExclusiveStartTableName": name[:-1]})["TableNames"]:
            pass
    assert len(labels) == 2

"""UpdateTable: billing mode, throughput, deletion protection, table class, and the answer."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import table, wait_until_active

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local
ours_alone = pytest.mark.ours_alone

INVALID = "One or more parameter values were invalid: "
PROVISIONED = {
    "BillingMode": "PROVISIONED",
    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6},
}


def updated(wire: WireClient, name: str, **members: Any) -> dict[str, Any]:
    answer = wire("UpdateTable", {"TableName": name, **members})
    assert answer["TableDescription"]["TableName"] == name
    return wait_until_active(wire, name)


@differs_from_dynamodb_local("it shows the new units at once")
def test_a_table_that_is_updating_has_its_old_units(wire: WireClient):
    with table(wire, "pk:S", **PROVISIONED) as name:
        throughput = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 3}
        request = {"TableName": name, "ProvisionedThroughput": throughput}
        answer = wire("UpdateTable", request)["TableDescription"]
        assert answer["TableStatus"] == "UPDATING"
        shown = answer["ProvisionedThroughput"]
        assert shown.pop("LastIncreaseDateTime") == shown.pop("LastDecreaseDateTime")
        assert shown == {
            "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": 5,
            "WriteCapacityUnits": 6,
        }
        described = wait_until_active(wire, name)["ProvisionedThroughput"]
        assert described["ReadCapacityUnits"] == 7
        assert described["NumberOfDecreasesToday"] == 1


@differs_from_dynamodb_local("it goes by no class")
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"DeletionProtectionEnabled": True},
            INVALID + "DeletionProtection modification must be the only operation in the request",
        ),
        (
            {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
            INVALID + "TableClass modification must be the only operation in the request",
        ),
    ],
)
def test_protection_and_class_can_be_changed_without_other_settings(
    lanes: LanesClient, simple: str, members: dict[str, Any], message: str
):
    before = lanes("DescribeTable", {"TableName": simple})
    request = {"TableName": simple, **members, **PROVISIONED}
    assert lanes.refused("UpdateTable", request) == ("ValidationException", message)
    assert lanes("DescribeTable", {"TableName": simple}) == before


@differs_from_dynamodb_local("other words")
def test_warm_throughput_is_not_lowered(lanes: LanesClient, simple: str):
    request = {"TableName": simple, "WarmThroughput": {"ReadUnitsPerSecond": 11_999}}
    assert lanes.refused("UpdateTable", request) == (
        "ValidationException",
        (
            "One or more parameter values were invalid: Requested ReadUnitsPerSecond for "
            "WarmThroughput for table is lower than initial throughput for OnDemand. See: "
            "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
            "on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
        ),
    )


@differs_from_dynamodb_local("it keeps no times")
def test_provisioned_throughput_changes(wire: WireClient):
    with table(wire, "pk:S", **PROVISIONED) as name:
        throughput = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 3}
        described = updated(wire, name, ProvisionedThroughput=throughput)["ProvisionedThroughput"]
        assert described["ReadCapacityUnits"] == 7
        assert described["WriteCapacityUnits"] == 3
        assert described["LastIncreaseDateTime"] > 0
        assert described["LastDecreaseDateTime"] > 0


@differs_from_dynamodb_local("it counts no decreases")
def test_decreases_are_counted(wire: WireClient):
    with table(wire, "pk:S", **PROVISIONED) as name:
        throughput = {"ReadCapacityUnits": 4, "WriteCapacityUnits": 6}
        described = updated(wire, name, ProvisionedThroughput=throughput)["ProvisionedThroughput"]
        assert described["NumberOfDecreasesToday"] == 1


@differs_from_dynamodb_local("it shows the time at once")
def test_the_time_of_the_switch_to_on_demand_is_shown_after_the_update(wire: WireClient):
    with table(wire, "pk:S", **PROVISIONED) as name:
        request = {"TableName": name, "BillingMode": "PAY_PER_REQUEST"}
        answer = wire("UpdateTable", request)["TableDescription"]
        assert answer["TableStatus"] == "UPDATING"
        assert answer["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
        first = wait_until_active(wire, name)["BillingModeSummary"]
        assert first["LastUpdateToPayPerRequestDateTime"] > 0
        back = wire("UpdateTable", {"TableName": name, **PROVISIONED})["TableDescription"]
        assert back["BillingModeSummary"] == {**first, "BillingMode": "PROVISIONED"}
        assert back["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
        wait_until_active(wire, name)
        again = wire("UpdateTable", request)["TableDescription"]
        assert again["BillingModeSummary"] == first
        wait_until_active(wire, name)


def test_a_table_can_become_on_demand_and_provisioned_again(wire: WireClient):
    with table(wire, "pk:S", **PROVISIONED) as name:
        described = updated(wire, name, BillingMode="PAY_PER_REQUEST")
        assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        assert described["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"] > 0
        assert described["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
        described = updated(wire, name, **PROVISIONED)
        assert described["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
        assert described["BillingModeSummary"]["BillingMode"] == "PROVISIONED"


def test_a_protected_table_is_not_deleted(wire: WireClient):
    with table(wire, "pk:S", DeletionProtectionEnabled=True) as name:
        assert wire.refused("DeleteTable", {"TableName": name}) == (
            "ValidationException",
            (
                "Resource cannot be deleted as it is currently protected against deletion. "
                "Disable deletion protection first."
            ),
        )
        described = updated(wire, name, DeletionProtectionEnabled=False)
        assert described["DeletionProtectionEnabled"] is False


@differs_from_dynamodb_local("it keeps none of them")
@pytest.mark.parametrize(
    ("members", "shown"),
    [
        (
            {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
            ("TableClassSummary", "TableClass", "STANDARD_INFREQUENT_ACCESS"),
        ),
        (
            {"OnDemandThroughput": {"MaxReadRequestUnits": 50, "MaxWriteRequestUnits": 60}},
            ("OnDemandThroughput", "MaxReadRequestUnits", 50),
        ),
        (
            {"SSESpecification": {"Enabled": True, "SSEType": "KMS"}},
            ("SSEDescription", "Status", "ENABLED"),
        ),
        (
            {"WarmThroughput": {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 5_000}},
            ("WarmThroughput", "ReadUnitsPerSecond", 13_000),
        ),
    ],
)
def test_settings_are_described(
    wire: WireClient, members: dict[str, Any], shown: tuple[str, str, Any]
):
    outer, inner, value = shown
    with table(wire, "pk:S") as name:
        assert updated(wire, name, **members)[outer][inner] == value


@ours_alone("it keeps none of them")
def test_the_answer_shows_what_is_in_progress(wire: WireClient):
    with table(wire, "pk:S") as name:
        encrypted = {"SSESpecification": {"Enabled": True}}
        answer = wire("UpdateTable", {"TableName": name, **encrypted})["TableDescription"]
        assert answer["TableStatus"] == "UPDATING"
        assert answer["SSEDescription"] == {"Status": "UPDATING"}
        shown = wait_until_active(wire, name)["SSEDescription"]
        assert re.search(
            r":key/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", shown["KMSMasterKeyArn"]
        )
        request = {"TableName": name, "SSESpecification": {"Enabled": False}}
        answer = wire("UpdateTable", request)["TableDescription"]
        assert answer["SSEDescription"] == {"Status": "UPDATING"}
        assert "SSEDescription" not in wait_until_active(wire, name)

        warm = {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 4_000}
        answer = wire("UpdateTable", {"TableName": name, "WarmThroughput": warm})
        answer = answer["TableDescription"]
        assert answer["TableStatus"] == "ACTIVE"
        assert answer["WarmThroughput"] == {
            "ReadUnitsPerSecond": 12_000,
            "WriteUnitsPerSecond": 4_000,
            "Status": "UPDATING",
        }

        rarely = {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
        answer = wire("UpdateTable", {"TableName": name, **rarely})["TableDescription"]
        assert answer["TableStatus"] == "UPDATING"
        assert answer["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
        wait_until_active(wire, name)
        for members in (rarely, {"BillingMode": "PAY_PER_REQUEST"}):
            answer = wire("UpdateTable", {"TableName": name, **members})["TableDescription"]
            assert answer["TableStatus"] == "UPDATING"
            described = wire("DescribeTable", {"TableName": name})["Table"]
            assert described["TableStatus"] == "ACTIVE"


def test_an_update_changes_no_items(wire: WireClient):
    with table(wire, "pk:S") as name:
        wire("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}, "v": {"N": "1"}}})
        updated(wire, name, **PROVISIONED)
        assert wire("GetItem", {"TableName": name, "Key": {"pk": {"S": "a"}}})["Item"]["v"]


@differs_from_dynamodb_local("other words")
def test_throughput_that_changes_nothing_is_refused(wire: WireClient):
    with table(wire, "pk:S", **PROVISIONED) as name:
        throughput = PROVISIONED["ProvisionedThroughput"]
        request = {"TableName": name, "ProvisionedThroughput": throughput}
        assert wire.refused("UpdateTable", request) == (
            "ValidationException",
            (
                "The provisioned throughput for the table will not change. The requested value "
                "equals "
                "the current value. Current ReadCapacityUnits provisioned for the table: 5. "
                "Requested "
                "ReadCapacityUnits: 5. Current WriteCapacityUnits provisioned for the table: 6. "
                "Requested WriteCapacityUnits: 6. Refer to the Amazon DynamoDB Developer Guide for "
                "current limits and how to request higher limits."
            ),
        )


@differs_from_dynamodb_local("other words")
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"BillingMode": "PROVISIONED"},
            (
                "One or more parameter values were invalid: ProvisionedThroughput must be "
                "specified "
                "when BillingMode is PROVISIONED"
            ),
        ),
        (
            {"ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}},
            (
                "One or more parameter values were invalid: Neither ReadCapacityUnits nor "
                "WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
            ),
        ),
    ],
)
def test_an_invalid_update_is_refused(wire: WireClient, simple: str, members: Any, message: str):
    refusal = wire.refused("UpdateTable", {"TableName": simple, **members})
    assert refusal == ("ValidationException", message)


def test_an_update_without_changes_is_refused(wire: WireClient, simple: str):
    assert wire.refused("UpdateTable", {"TableName": simple}) == (
        "ValidationException",
        (
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
            "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, "
            "MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, "
            "DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is "
            "required"
        ),
    )


def test_an_unknown_table_is_not_found(wire: WireClient):
    request = {"TableName": "no-such-table-anywhere", "BillingMode": "PAY_PER_REQUEST"}
    assert wire.refused("UpdateTable", request).type == "ResourceNotFoundException"


@ours_alone("replicas come later")
@pytest.mark.parametrize(
    "members",
    [
        {"ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]},
        {"MultiRegionConsistency": "STRONG"},
        {"GlobalTableWitnessUpdates": [{"Create": {"RegionName": "eu-west-1"}}]},
        {"DisassociationProtectionEnabled": True},
    ],
)
def test_an_unsupported_setting_is_refused_clearly(wire: WireClient, simple: str, members: Any):
    before = wire("DescribeTable", {"TableName": simple})
    refusal = wire.refused("UpdateTable", {"TableName": simple, **members})
    assert refusal.type == "ValidationException"
    assert refusal.message is not None
    assert refusal.message.endswith("not supported yet")
    assert wire("DescribeTable", {"TableName": simple}) == before

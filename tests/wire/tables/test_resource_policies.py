"""Resource policies. A server without --policy-dir keeps them, and allows everything."""

from __future__ import annotations

import json

import pytest

from tests.support.clients.clients import WireClient

NOT_FOUND = "Resource-based policy not found for the provided ResourceArn: "


@pytest.mark.differs_from_dynamodb_local("it knows no policies")
def test_a_policy_is_attached_and_removed(wire: WireClient, simple: str):
    arn = wire("DescribeTable", {"TableName": simple})["Table"]["TableArn"]
    owner = arn.split(":")[4]
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{owner}:root"},
        "Action": "dynamodb:GetItem",
        "Resource": arn,
    }
    text = json.dumps({"Version": "2012-10-17", "Statement": statement})
    request = {"ResourceArn": arn, "Policy": text}
    revision = wire("PutResourcePolicy", request)["RevisionId"]
    found = wire("GetResourcePolicy", {"ResourceArn": arn})
    assert json.loads(found["Policy"]) == json.loads(text)
    assert found["RevisionId"] == revision
    refused = wire.refused("PutResourcePolicy", {**request, "ExpectedRevisionId": "NO_POLICY"})
    assert refused == (
        "PolicyNotFoundException",
        (
            f"{NOT_FOUND}Requested policy update expecting none to be present for table {simple}, "
            f"but a policy exists with revision id {revision}."
        ),
    )
    refused = wire.refused("DeleteResourcePolicy", {"ResourceArn": arn, "ExpectedRevisionId": "1"})
    assert refused == (
        "PolicyNotFoundException",
        (
            f"{NOT_FOUND}Requested update for policy with revision id 1, but the policy associated "
            f"to target table {simple} has revision id {revision}."
        ),
    )
    assert wire("DeleteResourcePolicy", {"ResourceArn": arn}) == {"RevisionId": revision}
    refused = wire.refused("GetResourcePolicy", {"ResourceArn": arn})
    assert refused.type == "PolicyNotFoundException"


@pytest.mark.differs_from_dynamodb_local("it knows no policies")
@pytest.mark.parametrize(("field", "other"), [(1, "aws-cn"), (4, "111122223333")])
def test_a_resource_of_another_account_or_partition_is_refused(
    wire: WireClient, simple: str, field: int, other: str
):
    fields = wire("DescribeTable", {"TableName": simple})["Table"]["TableArn"].split(":")
    fields[field] = other
    foreign = ":".join(fields)
    for operation in ("GetResourcePolicy", "DeleteResourcePolicy"):
        assert wire.refused(operation, {"ResourceArn": foreign}) == (
            "ValidationException",
            (
                "One or more parameter values were invalid: Invalid TableArn: Invalid ResourceArn "
                f"provided as input {foreign}"
            ),
        )


@pytest.mark.differs_from_dynamodb_local("it knows no policies")
def test_a_policy_of_a_missing_table_is_not_found(wire: WireClient, simple: str):
    arn = wire("DescribeTable", {"TableName": simple})["Table"]["TableArn"]
    missing = arn.replace(simple, "no-such-table-anywhere")
    for operation in ("GetResourcePolicy", "DeleteResourcePolicy"):
        assert wire.refused(operation, {"ResourceArn": missing}) == (
            "ResourceNotFoundException",
            "Requested resource not found: Table: no-such-table-anywhere not found",
        )

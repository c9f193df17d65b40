"""Tags of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import definition, table, unique_name

pytestmark = pytest.mark.differs_from_dynamodb_local("its tags are wrong")


@pytest.fixture
def arn(wire: WireClient) -> Iterator[str]:
    """The ARN of a table without tags."""
    with table(wire, "pk:S") as name:
        yield wire("DescribeTable", {"TableName": name})["Table"]["TableArn"]


def tags(wire: WireClient, arn: str) -> dict[str, str]:
    listed = wire("ListTagsOfResource", {"ResourceArn": arn})
    assert "NextToken" not in listed
    return {tag["Key"]: tag["Value"] for tag in listed["Tags"]}


def tag_list(**pairs: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


def test_a_table_without_tags_lists_none(wire: WireClient, arn: str):
    assert tags(wire, arn) == {}


def test_tags_are_added_changed_and_removed(wire: WireClient, arn: str):
    wire("TagResource", {"ResourceArn": arn, "Tags": tag_list(a="1", b="2")})
    wire("TagResource", {"ResourceArn": arn, "Tags": tag_list(b="3", c="")})
    assert tags(wire, arn) == {"a": "1", "b": "3", "c": ""}
    wire("UntagResource", {"ResourceArn": arn, "TagKeys": ["a", "never there"]})
    assert tags(wire, arn) == {"b": "3", "c": ""}


def test_the_answer_to_tag_resource_has_an_empty_body(wire: WireClient, arn: str):
    for operation, members in (
        ("TagResource", {"Tags": tag_list(a="1")}),
        ("UntagResource", {"TagKeys": ["a"]}),
    ):
        answer = wire.send(operation, {"ResourceArn": arn, **members})
        assert answer.status == 200
        assert answer.body == b""
        assert answer.headers["x-amz-crc32"] == "0"


def test_a_table_has_at_most_fifty_tags(wire: WireClient, arn: str):
    many = [{"Key": f"key{number}", "Value": str(number)} for number in range(50)]
    wire("TagResource", {"ResourceArn": arn, "Tags": many})
    collected: dict[str, str] = {}
    request: dict[str, Any] = {"ResourceArn": arn}
    while True:
        answer = wire("ListTagsOfResource", request)
        collected |= {tag["Key"]: tag["Value"] for tag in answer["Tags"]}
        if "NextToken" not in answer:
            break
        request["NextToken"] = answer["NextToken"]
    assert len(collected) == 50
    refusal = wire.refused("TagResource", {"ResourceArn": arn, "Tags": tag_list(one_more="1")})
    assert refusal.type in ("ValidationException", "LimitExceededException")


def test_length_limits_of_tags_count_characters(wire: WireClient, arn: str):
    key, value = "é" * 128, "漢" * 256
    wire("TagResource", {"ResourceArn": arn, "Tags": [{"Key": key, "Value": value}]})
    assert tags(wire, arn) == {key: value}


@pytest.mark.parametrize(
    "tag",
    [
        {"Key": "", "Value": "a"},
        {"Key": "k" * 129, "Value": "a"},
        {"Key": "k", "Value": "v" * 257},
        {"Key": "k"},
        {"Value": "v"},
        {"Key": "a,b", "Value": "v"},
        {"Key": "k", "Value": "50%"},
    ],
)
def test_a_bad_tag_is_refused(wire: WireClient, arn: str, tag: Any):
    refusal = wire.refused("TagResource", {"ResourceArn": arn, "Tags": [tag]})
    assert refusal.type == "ValidationException"
    assert tags(wire, arn) == {}


def test_a_table_with_an_invalid_character_in_a_tag_is_not_created(lanes: LanesClient):
    request = definition("pk:S", Tags=[{"Key": "owner", "Value": "me!"}])
    assert lanes.refused("CreateTable", request) == (
        "ValidationException",
        (
            "One or more parameter values were invalid: The tag value me! has a character that is "
            "not allowed. Allowed are letters, white space, digits and + - = . _ : / @"
        ),
    )


def test_tags_may_have_letters_digits_and_spaces_of_any_script_and_some_signs(
    wire: WireClient, arn: str
):
    key, value = "Ключ 1+-=._:/@", "値 ٣ é"
    wire("TagResource", {"ResourceArn": arn, "Tags": [{"Key": key, "Value": value}]})
    assert tags(wire, arn) == {key: value}


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("TagResource", {"Tags": [{"Key": "a", "Value": "1"}]}),
        ("UntagResource", {"TagKeys": ["a"]}),
        ("ListTagsOfResource", {}),
    ],
)
def test_an_invalid_arn_is_refused(lanes: LanesClient, operation: str, members: dict[str, Any]):
    assert lanes.refused(operation, {"ResourceArn": "I_do_not_exist", **members}) == (
        "ValidationException",
        (
            "One or more parameter values were invalid: Invalid TableArn: Invalid ResourceArn "
            "provided as input I_do_not_exist"
        ),
    )


def test_an_unknown_table_is_not_found(wire: WireClient, arn: str):
    other = f"{arn.rpartition('/')[0]}/{unique_name()}"
    for operation, members in (
        ("TagResource", {"Tags": tag_list(a="1")}),
        ("UntagResource", {"TagKeys": ["a"]}),
        ("ListTagsOfResource", {}),
    ):
        refusal = wire.refused(operation, {"ResourceArn": other, **members})
        assert refusal.type == "ResourceNotFoundException"


def test_a_recreated_table_has_no_tags_of_the_old_one(wire: WireClient):
    name = unique_name()
    with table(wire, "pk:S", name=name, Tags=tag_list(a="1")):
        pass
    while wire.send("DescribeTable", {"TableName": name}).status == 200:
        pass
    with table(wire, "pk:S", name=name):
        arn = wire("DescribeTable", {"TableName": name})["Table"]["TableArn"]
        assert tags(wire, arn) == {}

"""DynamoDB's JSON 1.0 protocol: targets, content types, headers of every answer, bad bodies."""

from __future__ import annotations

import re
from contextlib import closing
from zlib import crc32

import pytest

from tests.support.clients.clients import JSON_1_0, WireClient, refusal
from tests.support.tables.tables import unique_name

_REQUEST_ID = re.compile(r"[0-9A-Z]{52}\Z")

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local


@differs_from_dynamodb_local("its request ids are UUIDs")
@pytest.mark.parametrize("operation", ["ListTables", "DescribeTable", "NoSuchOperation"])
def test_every_answer_has_a_request_id_of_its_own(wire: WireClient, operation: str):
    body = {"TableName": unique_name()} if operation == "DescribeTable" else {}
    ids = {wire.send(operation, body).headers["x-amzn-RequestId"] for _ in range(3)}
    assert len(ids) == 3
    assert all(_REQUEST_ID.match(request_id) for request_id in ids)


@differs_from_dynamodb_local("its errors have none")
@pytest.mark.parametrize("operation", ["ListTables", "DescribeTable"])
def test_every_answer_has_the_crc32_of_its_body(wire: WireClient, operation: str):
    body = {"TableName": unique_name()} if operation == "DescribeTable" else {}
    answer = wire.send(operation, body)
    assert answer.headers["x-amz-crc32"] == str(crc32(answer.body))


@pytest.mark.parametrize("content_type", [JSON_1_0, "application/json"])
@differs_from_dynamodb_local("it always answers application/x-amz-json-1.0")
def test_the_content_type_of_the_request_is_that_of_the_answer(wire: WireClient, content_type: str):
    answer = wire.send("ListTables", {}, {"Content-Type": content_type})
    assert answer.status == 200
    assert answer.headers["Content-Type"] == content_type


def test_a_content_type_may_name_its_charset(wire: WireClient):
    answer = wire.send("ListTables", {}, {"Content-Type": f"{JSON_1_0}; charset=utf-8"})
    assert answer.status == 200


@differs_from_dynamodb_local("it looks at no content type")
@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/cbor"]
)
def test_a_body_of_another_content_type_is_refused(wire: WireClient, content_type: str):
    answer = wire.send("ListTables", {}, {"Content-Type": content_type})
    assert answer.status == 404
    assert answer.body == b"<UnknownOperationException/>\n"


UNKNOWN = {"__type": "com.amazon.coral.service#UnknownOperationException"}


@differs_from_dynamodb_local("it asks for a signature")
@pytest.mark.parametrize("lane", [{}, {"TE": "trailers"}], ids=["fast", "plain"])
def test_a_body_without_a_content_type_is_not_parsed_as_json(endpoint: str, lane: dict[str, str]):
    with closing(WireClient(endpoint)) as wire:
        answer = wire.request("POST", "/", b"", lane)
        assert (answer.status, answer.json) == (400, UNKNOWN)
        unsigned = lane | {"Content-Type": "", "Authorization": ""}
        assert refusal(wire.send("ListTables", b"", unsigned)).type == (
            "MissingAuthenticationTokenException"
        )
        assert wire.send("ListTables", b"{}", lane | {"Content-Type": ""}).status == 404


@differs_from_dynamodb_local("it looks at the target first")
@pytest.mark.parametrize("target", ["", "DynamoDB_20120810.NoSuchOperation"])
@pytest.mark.parametrize("lane", [{}, {"TE": "trailers"}], ids=["fast", "plain"])
def test_invalid_json_is_reported_before_an_unknown_target(
    endpoint: str, lane: dict[str, str], target: str
):
    with closing(WireClient(endpoint)) as wire:
        answer = wire.send("", b"hi", lane | {"X-Amz-Target": target})
    assert (answer.status, answer.json) == (
        400,
        {"__type": "com.amazon.coral.service#SerializationException"},
    )


@differs_from_dynamodb_local("it answers HTML or 400")
@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_only_post_is_an_operation(wire: WireClient, method: str):
    answer = wire.request(method, "/", "{}", {"Content-Type": JSON_1_0})
    assert answer.status == 404
    assert answer.body == b"<UnknownOperationException/>\n"


@differs_from_dynamodb_local("it answers 400 to a GET")
def test_get_reports_that_the_server_is_healthy(wire: WireClient):
    answer = wire.request("GET", "/", None, {})
    assert answer.status == 200
    assert re.match(rb"healthy: dynamodb\.[a-z0-9-]+\.amazonaws\.com \Z", answer.body)
    assert answer.headers["x-amz-crc32"] == str(crc32(answer.body))


@differs_from_dynamodb_local("it adds a message")
@pytest.mark.parametrize(
    "target",
    [
        "DynamoDB_20120810.NoSuchOperation",
        "DynamoDB_20120810.putItem",
        "DynamoDB_20120810.",
        "DynamoDB_20111205.PutItem",
        "PutItem",
        "DynamoDB_20120810.PutItem.More",
        "",
    ],
)
def test_an_unknown_target_is_an_unknown_operation(wire: WireClient, target: str):
    answer = wire.send("", {}, {"X-Amz-Target": target})
    assert answer.status == 400
    assert answer.json == UNKNOWN


@differs_from_dynamodb_local("it answers 500 to some, with a message to others")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"not json",
        b'{"TableName": "abc"',
        b'{"TableName": "abc"} {}',
        b"{'TableName': 'abc'}",
        b'{"TableName": "abc",}',
        b'{"Limit": 01}',
        b'{"Limit": NaN}',
        b'{"ExclusiveStartTableName": "\xff\xfe"}',
        b'{"TableName": "\\ud8"}',
        b'{"TableName": "a\nb"}',
        b"\x00",
    ],
)
def test_invalid_json_is_a_serialization_error(wire: WireClient, body: bytes):
    answer = wire.send("ListTables", body)
    assert answer.status == 400
    assert answer.json["__type"] == "com.amazon.coral.service#SerializationException"


@differs_from_dynamodb_local("it answers 500")
@pytest.mark.parametrize("body", ["[]", '"text"', "1", "true", "null"])
def test_a_body_that_is_no_object_is_a_serialization_error(wire: WireClient, body: str):
    answer = wire.send("ListTables", body)
    assert answer.status == 400
    assert refusal(answer).type == "SerializationException"


@differs_from_dynamodb_local("its parser gives up with an internal error")
def test_json_nested_a_hundred_thousand_deep_is_refused(wire: WireClient):
    body = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    answer = wire.send("ListTables", body)
    assert answer.status == 400
    assert wire.send("ListTables", {}).status == 200


def test_unknown_members_are_ignored(wire: WireClient):
    assert "TableNames" in wire("ListTables", {"NoSuchMember": {"a": [1, 2, None]}, "Limit": 1})


def test_a_null_member_counts_as_missing(wire: WireClient):
    assert "TableNames" in wire("ListTables", {"Limit": None, "ExclusiveStartTableName": None})


def test_white_space_around_the_body_is_ignored(wire: WireClient):
    assert wire.send("ListTables", b'\r\n\t {"Limit" : 1 } \n').status == 200


def test_a_request_without_any_credentials_is_refused(wire: WireClient):
    answer = wire.send("ListTables", {}, {"Authorization": "", "X-Amz-Date": ""})
    assert answer.status == 400
    assert refusal(answer).type in (
        "MissingAuthenticationTokenException",
        "MissingAuthenticationToken",
    )


@pytest.mark.parametrize("access_key", ["AKIDEXAMPLE", "test", "a-b-c"])
@pytest.mark.parametrize("region", ["us-east-1", "local", "localhost", "eu-west-3"])
@differs_from_dynamodb_local("it takes no hyphens in an access key")
def test_any_credentials_of_any_region_see_the_same_tables(
    wire: WireClient, simple: str, access_key: str, region: str
):
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={access_key}/20260101/{region}/dynamodb/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=abc"
    )
    answer = wire.send("DescribeTable", {"TableName": simple}, {"Authorization": authorization})
    assert answer.status == 200, answer.body


@differs_from_dynamodb_local("it reads no query string")
def test_a_signature_may_be_in_the_query_string(wire: WireClient):
    query = (
        "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=test%2F20260101%2Fus-east-1%2F"
        "dynamodb%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-SignedHeaders=host"
        "&X-Amz-Signature=abc"
    )
    headers = {"Content-Type": JSON_1_0, "X-Amz-Target": "DynamoDB_20120810.ListTables"}
    assert wire.request("POST", query, "{}", headers).status == 200


@differs_from_dynamodb_local("it answers 404 or 500")
def test_a_cbor_client_gets_a_clear_error(wire: WireClient):
    headers = {"Content-Type": "application/cbor", "Smithy-Protocol": "rpc-v2-cbor"}
    path = "/service/DynamoDB_20120810/operation/ListTables"
    answer = wire.request("POST", path, b"\xbf\xff", headers)
    assert 400 <= answer.status < 500


@differs_from_dynamodb_local("its namespaces and spellings are its own")
def test_an_error_has_a_namespace_and_a_message(wire: WireClient):
    name = unique_name()
    answer = wire.send("DescribeTable", {"TableName": name})
    assert answer.status == 400
    assert answer.json == {
        "__type": "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException",
        "message": f"Requested resource not found: Table: {name} not found",
    }


@differs_from_dynamodb_local("its namespaces and spellings are its own")
def test_a_validation_error_has_its_own_namespace(wire: WireClient):
    answer = wire.send("ListTables", {"Limit": 0})
    assert answer.status == 400
    assert answer.json["__type"] == "com.amazon.coral.validate#ValidationException"
    assert "message" in answer.json


@pytest.mark.ours_alone("DynamoDB itself allows any origin")
def test_no_origin_is_allowed_unless_it_is_configured(wire: WireClient):
    answer = wire.send("ListTables", {}, {"Origin": "http://example.com"})
    assert "Access-Control-Allow-Origin" not in answer.headers
    preflight = wire.request(
        "OPTIONS",
        "/",
        None,
        {"Origin": "http://example.com", "Access-Control-Request-Method": "POST"},
    )
    assert "Access-Control-Allow-Origin" not in preflight.headers

"""The generator sends the same requests as SDKs, and parses answers from any chunks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials

from dynactor.load.wire.answers import Answer, BadAnswer, take_answer
from dynactor.load.wire.endpoint import NotAnEndpoint, parse_endpoint
from dynactor.load.wire.requests import Requests
from dynactor.load.wire.signing import Credentials, NoCredentials, Signer, find_credentials

_URL = "https://dynamodb.eu-central-1.amazonaws.com"
_TARGET = "DynamoDB_20120810.GetItem"
_BODY = b'{"TableName":"t"}'


@pytest.mark.parametrize("token", [None, "a-token"])
def test_a_signature_is_the_one_that_boto3_makes(
    token: str | None, monkeypatch: pytest.MonkeyPatch
):
    now = datetime(2026, 11, 20, 12, 0, 1, tzinfo=UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: now)
    request = AWSRequest("POST", _URL, headers={"X-Amz-Target": _TARGET}, data=_BODY)
    SigV4Auth(BotoCredentials("AKID", "secret", token), "dynamodb", "eu-central-1").add_auth(
        request
    )
    endpoint = parse_endpoint(_URL)
    signer = Signer(Credentials("AKID", "secret", token), "eu-central-1", endpoint.host_header)
    lines = signer.headers(_TARGET, _BODY, now).splitlines()
    assert f"Authorization: {request.headers['Authorization']}" in lines


def test_the_repr_of_credentials_hides_the_secret():
    assert "secret" not in repr(Credentials("AKID", "secret"))
    assert "AKID" not in f"{Credentials('AKID', 'secret')}"


def test_credentials_come_from_the_environment_first():
    environment = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    assert find_credentials(environment) == ("a", "b", None)


def test_the_error_without_credentials_says_where_to_set_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dynactor.load.wire.signing.find_spec", lambda _: None)
    with pytest.raises(NoCredentials, match="AWS_ACCESS_KEY_ID"):
        find_credentials({})


def test_a_request_has_its_length_and_target():
    endpoint = parse_endpoint("http://127.0.0.1:8000")
    head, _, body = Requests(endpoint, "local").make("GetItem", _BODY).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST / HTTP/1.1"
    assert "Host: 127.0.0.1:8000" in lines
    assert f"X-Amz-Target: {_TARGET}" in lines
    assert f"Content-Length: {len(_BODY)}" in lines
    assert body == _BODY


@pytest.mark.parametrize(
    ("url", "host_header", "region"),
    [
        ("http://localhost", "localhost", None),
        ("http://localhost:8000/", "localhost:8000", None),
        ("http://[::1]:8000", "[::1]:8000", None),
        (_URL, "dynamodb.eu-central-1.amazonaws.com", "eu-central-1"),
        ("https://dynamodb.example.com:443", "dynamodb.example.com", None),
        ("https://123.ddb-x.dynamodb.us-east-1.amazonaws.com", None, "us-east-1"),
    ],
)
def test_an_endpoint_is_parsed(url: str, host_header: str | None, region: str | None):
    endpoint = parse_endpoint(url)
    assert host_header in {None, endpoint.host_header}
    assert endpoint.aws_region == region


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://localhost", "http://", "http://h:x", "http://h/path"]
)
def test_an_invalid_endpoint_is_refused(url: str):
    with pytest.raises(NotAnEndpoint):
        parse_endpoint(url)


_PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx-amzn-RequestId: X\r\n\r\n{a: 1"
_LOWER = b"HTTP/1.1 400 Bad Request\r\nserver: x\r\ncontent-length:5\r\n\r\n{a: 1"
_CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{a:\r\n2;x=y\r\n 1\r\n0\r\n\r\n"
)


@pytest.mark.parametrize(
    ("received", "status"), [(_PLAIN, 200), (_LOWER, 400), (_CHUNKED, 200)], ids=["1", "2", "3"]
)
def test_an_answer_is_whole_when_its_last_byte_is_there(received: bytes, status: int):
    assert take_answer(received) == Answer(status, b"{a: 1")
    for length in range(len(received)):
        assert take_answer(received[:length]) is None


@pytest.mark.parametrize(
    "received",
    [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n", _PLAIN + b"more"],
)
def test_bytes_that_are_not_an_http_answer_are_refused(received: bytes):
    with pytest.raises(BadAnswer):
        take_answer(received)


@pytest.mark.parametrize(
    ("answer", "error", "is_refusal"),
    [
        (Answer(200, b"{}"), "", False),
        (Answer(400, b'{"__type":"a.b#ThrottlingException"}'), "ThrottlingException", True),
        (Answer(400, b'{"__type":"Unprefixed"}'), "Unprefixed", True),
        (
            Answer(
                400,
                b'{"__type":"x#TransactionCanceledException","CancellationReasons":'
                b'[{"Code":"None"},{"Code":"TransactionConflict"}]}',
            ),
            "TransactionConflictException",
            True,
        ),
        (Answer(502, b"<html>"), "HTTP 502", False),
        (Answer(0, b"Timeout"), "Timeout", False),
    ],
)
def test_an_error_has_the_name_that_dynamodb_gives_it(answer: Answer, error: str, is_refusal: bool):
    assert answer.error == error
    assert answer.is_refusal == is_refusal

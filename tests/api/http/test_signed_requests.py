"""A server with a credentials file accepts only requests signed with one of its keys."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from msgspec import json

from tests.support.clients.signing import signed_by_hand
from tests.support.servers.server import Server, run_command, running_server
from tests.support.tables.tables import definition, unique_name

KEYS = """
[app]
aws_access_key_id = AKIAAPP
aws_secret_access_key = se%cr/et+1

[ops]
aws_access_key_id = AKIAOPS
aws_secret_access_key = other
"""
APP = ("AKIAAPP", "se%cr/et+1")
BODY = b'{"Limit":1}'


@pytest.fixture(scope="module")
def keys_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "credentials"
    path.touch(0o600)
    path.write_text(KEYS)
    return path


@pytest.fixture(scope="module")
def server(keys_file: Path) -> Iterator[Server]:
    # With keys, a server may listen on all addresses without --allow-open.
    with running_server("--credentials-file", str(keys_file), "--host", "0.0.0.0") as server:  # noqa: S104
        yield server


def client(server: Server, key: tuple[str, str], service: str = "dynamodb", **options: Any) -> Any:
    port = urlsplit(server.endpoint).port
    return boto3.client(
        service,
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="eu-west-1",
        aws_access_key_id=key[0],
        aws_secret_access_key=key[1],
        config=Config(retries={"max_attempts": 0}),
        **options,
    )


def send(server: Server, headers: dict[str, str], body: bytes = BODY) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(server.endpoint).port)
    try:
        connection.request("POST", "/", body, headers)
        answer = connection.getresponse()
        return answer.status, json.decode(answer.read())
    finally:
        connection.close()


def signed(server: Server, **more: str) -> dict[str, str]:
    host = f"127.0.0.1:{urlsplit(server.endpoint).port}"
    request = AWSRequest("POST", f"http://{host}/", data=BODY)
    for name, text in {
        "Host": host,
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.ListTables",
        **more,
    }.items():
        request.headers[name] = text
    SigV4Auth(Credentials(*APP), "dynamodb", "us-east-1").add_auth(request)
    return dict(request.headers.items())


def test_a_client_with_a_key_is_accepted(server: Server):
    table = unique_name("signed")
    dynamodb = client(server, APP)
    dynamodb.create_table(**definition("pk:S", name=table))
    item = {"pk": {"S": "ü"}, "text": {"S": "x" * 100_000}}
    dynamodb.put_item(TableName=table, Item=item)
    others = client(server, ("AKIAOPS", "other"))
    assert others.get_item(TableName=table, Key={"pk": {"S": "ü"}})["Item"] == item
    assert client(server, APP, "dynamodbstreams").list_streams()["Streams"] == []


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (("AKIAAPP", "other"), "InvalidSignatureException"),
        (("AKIAOPS", "se%cr/et+1"), "InvalidSignatureException"),
        (("any", "any"), "UnrecognizedClientException"),
    ],
)
def test_other_clients_are_refused(server: Server, key: tuple[str, str], code: str):
    with pytest.raises(ClientError) as caught:
        client(server, key).list_tables()
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_other_clients_can_read_the_error_for_a_large_request(server: Server):
    item = {"pk": {"S": "a"}, "text": {"S": "x" * 15_000_000}}
    with pytest.raises(ClientError) as caught:
        client(server, ("any", "any")).put_item(TableName="nobodys", Item=item)
    assert caught.value.response["Error"]["Code"] == "UnrecognizedClientException"


# The header Te makes the fast lane pass the request to the full lane.
LANES = pytest.mark.parametrize("more", [{}, {"Te": "trailers"}], ids=["fast lane", "full lane"])


@LANES
def test_both_lanes_check_signatures(server: Server, more: dict[str, str]):
    headers = signed(server, **more)
    assert send(server, headers)[0] == 200
    status, answer = send(server, headers, BODY.replace(b"1", b"2"))
    assert status == 400
    assert answer["__type"] == "com.amazon.coral.service#InvalidSignatureException"
    target = {"X-Amz-Target": "DynamoDB_20120810.DescribeLimits"}
    assert send(server, headers | target)[0] == 400
    unsigned = {name: text for name, text in headers.items() if name != "Authorization"}
    status, answer = send(server, unsigned)
    assert (status, answer) == (
        400,
        {
            "__type": "com.amazon.coral.service#MissingAuthenticationTokenException",
            "message": "Request is missing Authentication Token",
        },
    )


def answer_to(server: Server, target: bytes, headers: dict[str, str], *more: bytes) -> bytes:
    """Send a request of exactly these bytes; return the whole answer."""
    port = urlsplit(server.endpoint).port
    lines = [f"{name}: {text}".encode("latin-1") for name, text in headers.items()]
    length = b"Content-Length: %d" % len(BODY)
    head = [b"POST %b HTTP/1.1" % target, *lines, *more, length, b"Connection: close"]
    with socket.create_connection(("127.0.0.1", port)) as bare:
        bare.sendall(b"\r\n".join([*head, b"", BODY]))
        return bare.makefile("rb").read()


def by_hand(query: str = "", **more: str) -> dict[str, str]:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "host": "127.0.0.1",
        "content-type": "application/x-amz-json-1.0",
        "x-amz-date": stamp,
        "x-amz-target": "DynamoDB_20120810.ListTables",
    }
    return signed_by_hand(headers | more, sha256(BODY).hexdigest(), stamp, APP, query)


@pytest.mark.parametrize("more", [(), (b"TE: trailers",)], ids=["fast lane", "full lane"])
def test_headers_are_signed_as_bytes(server: Server, more: tuple[bytes, ...]):
    # In Latin-1, the last byte of à is a non-breaking space.
    headers = by_hand(note="voilà".encode().decode("latin-1"))
    assert answer_to(server, b"/", headers, *more).startswith(b"HTTP/1.1 200")
    spaced = headers | {"note": f"  \t{headers['note']}\t "}
    assert answer_to(server, b"/", spaced, *more).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("lane", [(), (b"TE: trailers",)], ids=["fast lane", "full lane"])
@pytest.mark.parametrize("second", ["the same", "Bearer other", "", "AWS4-HMAC-SHA256 Signature=x"])
def test_a_second_authorization_beside_a_valid_one_is_refused(
    server: Server, second: str, lane: tuple[bytes, ...]
):
    headers = by_hand()
    signature = headers["authorization"] if second == "the same" else second
    answer = answer_to(server, b"/", headers, f"Authorization: {signature}".encode(), *lane)
    assert answer.startswith(b"HTTP/1.1 400")
    assert json.decode(answer.rpartition(b"\r\n\r\n")[2]) == {
        "__type": "com.amazon.coral.service#InvalidSignatureException",
        "message": "Found more than one 'Authorization' HTTP header.",
    }


def test_query_strings_are_signed_as_bytes(server: Server):
    headers = by_hand("a=%FF")
    assert answer_to(server, b"/?a=%ff", headers).startswith(b"HTTP/1.1 200")
    assert answer_to(server, b"/?a=%fe", headers).startswith(b"HTTP/1.1 400")
    # An unquoted byte is either accepted as if it was quoted, or refused as invalid HTTP.
    assert answer_to(server, b"/?a=\xff", headers)[9:12] in (b"200", b"400")


def test_the_health_check_needs_no_signature(server: Server):
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(server.endpoint).port)
    connection.request("GET", "/")
    assert connection.getresponse().read().startswith(b"healthy")
    connection.close()


def test_the_printed_command_has_no_access_key(server: Server, keys_file: Path):
    assert f"with a key of {keys_file}" in server.announcement
    assert "aws_secret_access_key" not in server.announcement


def test_commands_sign_with_the_access_key_of_the_environment(server: Server):
    endpoint = f"http://127.0.0.1:{urlsplit(server.endpoint).port}"
    asked = ("violations", "--endpoint", endpoint, "--table", "nobodys", "--index", "any")
    granted = run_command(*asked, AWS_ACCESS_KEY_ID=APP[0], AWS_SECRET_ACCESS_KEY=APP[1])
    assert "ResourceNotFoundException" in granted.stderr
    without = run_command(*asked)
    assert "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in without.stderr
    wrong = run_command(*asked, AWS_ACCESS_KEY_ID=APP[0], AWS_SECRET_ACCESS_KEY="wrong")
    assert "InvalidSignatureException" in wrong.stderr


def test_a_file_without_keys_is_reported_at_start(tmp_path: Path):
    done = run_command("serve", "--in-memory", "--credentials-file", str(tmp_path / "none"))
    assert done.returncode == 1
    assert done.stderr.startswith("dynactor: --credentials-file: ")
    assert done.stderr.count("\n") == 1


def test_the_admin_port_needs_no_key_and_listens_only_on_loopback(keys_file: Path):
    done = run_command(
        *("serve", "--in-memory", "--credentials-file", str(keys_file)),
        *("--admin-port", "0", "--admin-host", "0.0.0.0"),  # noqa: S104
    )
    assert done.returncode == 1
    assert "may read metrics" in done.stderr

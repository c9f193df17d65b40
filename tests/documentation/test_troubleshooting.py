"""The messages in docs/TROUBLESHOOTING.md are those that are printed."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError

import dynactor.testing
from dynactor.api.testing.aws_guard import ReachesAWS, refuse_aws
from dynactor.storage.data_directory import FORMAT_VERSION
from tests.support.clients.clients import WireClient
from tests.support.documentation.pages import DOCS, blocks
from tests.support.servers.server import run_command, running_server

PAGE = DOCS / "TROUBLESHOOTING.md"
MESSAGES = [block.strip() for block in blocks(PAGE, "")]
REGION = {"region_name": "us-east-1"}
KEYS = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}


def shown(beginning: str) -> str:
    """The message on the page with this beginning."""
    [message] = (each for each in MESSAGES if each.startswith(beginning))
    return message


def refused_start(*arguments: str) -> str:
    """The error that a server prints when it does not start."""
    done = run_command("serve", *arguments)
    assert done.returncode == 1
    return done.stderr.strip()


def failure(endpoint: str, operation: str, **members: Any) -> str:
    """The text of boto3's error for a request that fails."""
    with (
        closing(boto3.client("dynamodb", endpoint_url=endpoint, **REGION, **KEYS)) as client,
        pytest.raises(ClientError) as raised,
    ):
        getattr(client, operation)(**members)
    return str(raised.value)


def test_the_page_has_at_least_twenty_errors_each_with_a_reason_and_advice():
    sections = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert len(sections) >= 20
    assert [each for each in sections if "Cause: " not in each or "Fix: " not in each] == []


def test_a_failed_start_prints_the_documented_message(tmp_path: Path):
    used, newer = tmp_path / "used", tmp_path / "newer"
    for directory in (used, newer):
        directory.mkdir()
    (used / "file").touch()
    (newer / "format").write_text("dynactor data, format 9\n")
    place = "/srv/data/dynactor"
    assert refused_start("--data-dir", str(used)).replace(str(used), "/srv/data") == shown(
        "dynactor: /srv/data holds files"
    )
    assert refused_start("--data-dir", str(newer)).replace(str(newer), place) == shown(
        f"dynactor: The data directory {place} has format 9, this dynactor knows formats up to "
        f"{FORMAT_VERSION}."
    )
    assert refused_start("--in-memory", "--host", "0.0.0.0") == shown("dynactor: Every client")  # noqa: S104


def test_a_port_or_directory_in_use_prints_the_documented_message(tmp_path: Path):
    data = tmp_path / "data"
    with running_server(data_dir=data) as server:
        port = server.endpoint.rpartition(":")[2]
        in_use = refused_start("--in-memory", "--port", port)
        taken = refused_start("--port", "0", "--data-dir", str(data))
        holder = str(server.process.pid)
    assert in_use.replace(port, "8000") == shown("dynactor: Cannot listen")
    expected = shown("dynactor: The data directory /home/ann")
    told = taken.replace(str(data), "/home/ann/.local/share/dynactor")
    assert told.replace(f"process {holder}.", "process 3117.") == expected


def test_an_unknown_variable_causes_the_documented_warning(tmp_path: Path):
    (tmp_path / "file").touch()
    done = run_command("serve", "--data-dir", str(tmp_path), DYNACTOR_PROT="9000")
    assert done.stderr.splitlines()[0] == shown("dynactor: warning")


def test_a_command_without_a_server_prints_the_documented_message():
    endpoint = "http://127.0.0.1:1"
    done = run_command("backup", "--endpoint", endpoint)
    assert done.returncode == 1
    told = done.stderr.strip().replace(endpoint, "http://127.0.0.1:8000")
    assert told == shown("dynactor: Cannot reach")


def test_a_test_that_calls_aws_fails_with_the_documented_message():
    with pytest.raises(ReachesAWS) as raised:
        refuse_aws("https://dynamodb.us-east-1.amazonaws.com/")
    assert str(raised.value) == shown("A client of DynamoDB called")


def test_a_failed_request_has_the_documented_message():
    key = {"KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}]}
    unused = [{"AttributeName": name, "AttributeType": "S"} for name in "ab"]
    with dynactor.testing.server() as server:
        missing = failure(server.endpoint, "get_item", TableName="Tab", Key={"a": {"S": "b"}})
        definition = {"TableName": "Tab", "BillingMode": "PAY_PER_REQUEST", **key}
        created = failure(
            server.endpoint, "create_table", AttributeDefinitions=unused, **definition
        )
        with closing(WireClient(server.endpoint)) as wire:
            # Older versions of boto3 don't know the operation.
            unsupported = wire.refused("SearchVectors", {})
    assert shown("An error occurred (UnknownOperationException)").endswith(
        f"({unsupported.type}) when calling the SearchVectors operation: {unsupported.message}"
    )
    assert missing == shown("An error occurred (ResourceNotFoundException)")
    assert created == shown("An error occurred (ValidationException) when calling the CreateTable")


def test_a_client_without_credentials_or_region_prints_the_documented_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    endpoint = {"endpoint_url": "http://127.0.0.1:1"}
    session = boto3.session.Session()
    with pytest.raises(BotoCoreError) as without_region:
        session.client("dynamodb", **endpoint)
    with (
        closing(session.client("dynamodb", **endpoint, **REGION)) as client,
        pytest.raises(BotoCoreError) as without_keys,
    ):
        client.list_tables()
    assert shown("botocore.exceptions.NoRegionError").endswith(str(without_region.value))
    assert shown("botocore.exceptions.NoCredentialsError").endswith(str(without_keys.value))

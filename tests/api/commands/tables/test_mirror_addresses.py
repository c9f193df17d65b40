"""Addresses and access keys of tables, and a mirror between two servers over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynactor.api.commands.tables.mirror_command import DONE, MirrorOptions, run_mirror
from dynactor.api.commands.tables.table_address import (
    open_endpoint,
    profile_environment,
    table_address,
)
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from tests.support.servers.in_process import running_in_process

CREDENTIALS = """
[old]
aws_access_key_id = A
aws_secret_access_key = B
[half]
aws_access_key_id = A
"""


def test_an_address_has_an_endpoint_and_a_table():
    address = table_address("https://host:8000/Music", None, {})
    assert address == ("https://host:8000", "https://host:8000", "Music", "us-east-1")
    assert str(address) == "https://host:8000/Music"


def test_the_text_of_an_address_has_no_password():
    address = table_address("http://ann:secret@host:8000/Music", None, {})
    assert address.endpoint == "http://ann:secret@host:8000"
    assert str(address) == "http://host:8000/Music"


async def test_an_address_may_be_of_two_tables_in_two_accounts(tmp_path: Path):
    async with running_in_process() as (host, port):
        address = f"http://{host}:{port}/music"
        options = MirrorOptions(source=address, target=address, state=tmp_path / "state.json")
        # With one key the tables are compared by their ids, once they exist.
        with pytest.raises(TransferFailed, match="The source has no table music"):
            await run_mirror(options)


def test_a_table_at_aws_has_the_hosts_of_its_region():
    address = table_address("aws:Music", None, {"AWS_REGION": "eu-west-1"})
    assert address.endpoint == "https://dynamodb.eu-west-1.amazonaws.com"
    assert address.streams_endpoint == "https://streams.dynamodb.eu-west-1.amazonaws.com"
    address = table_address("aws:Music", "cn-north-1", {})
    assert address.endpoint == "https://dynamodb.cn-north-1.amazonaws.com.cn"


@pytest.mark.parametrize("text", ["Music", "aws:", "http://host:8000", "ftp://host/Music"])
def test_another_text_is_not_an_address(text: str):
    with pytest.raises(TransferFailed, match="not the address of a table"):
        table_address(text, None, {})


def test_a_profile_replaces_the_key_of_the_environment(tmp_path: Path):
    path = tmp_path / "credentials"
    path.write_text(CREDENTIALS)
    environment = {
        "AWS_SHARED_CREDENTIALS_FILE": str(path),
        "AWS_ACCESS_KEY_ID": "C",
        "AWS_SESSION_TOKEN": "D",
        "AWS_REGION": "eu-west-1",
    }
    assert profile_environment(None, environment) == environment
    chosen = profile_environment("old", environment)
    assert (chosen["AWS_ACCESS_KEY_ID"], chosen["AWS_SECRET_ACCESS_KEY"]) == ("A", "B")
    assert chosen["AWS_REGION"] == "eu-west-1"
    assert "AWS_SESSION_TOKEN" not in chosen
    for profile in ("half", "new"):
        with pytest.raises(TransferFailed, match=f"no access key in the profile {profile}"):
            profile_environment(profile, environment)


async def test_a_table_is_mirrored_over_http_with_its_indexes_tags_and_ttl(tmp_path: Path):
    async with running_in_process() as (host, port), running_in_process() as (_, other_port):
        source, target = f"http://{host}:{port}/music", f"http://{host}:{other_port}/copy"
        index = {
            "IndexName": "by_v",
            "KeySchema": [{"AttributeName": "v", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
        async with (
            open_endpoint(table_address(source, None, {}), {}) as left,
            open_endpoint(table_address(target, None, {}), {}) as right,
        ):
            await left.call(
                "CreateTable",
                {
                    "TableName": "music",
                    "AttributeDefinitions": [
                        {"AttributeName": name, "AttributeType": "N"} for name in ("pk", "v")
                    ],
                    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                    "BillingMode": "PAY_PER_REQUEST",
                    "GlobalSecondaryIndexes": [index],
                    "Tags": [{"Key": "team", "Value": "a"}],
                },
            )
            ttl = {"Enabled": True, "AttributeName": "expires"}
            await left.call(
                "UpdateTimeToLive", {"TableName": "music", "TimeToLiveSpecification": ttl}
            )
            items = [{"pk": {"N": str(at)}, "v": {"N": "7"}} for at in range(30)]
            for item in items:
                await left.call("PutItem", {"TableName": "music", "Item": item})
            options = MirrorOptions(
                source=source,
                target=target,
                state=tmp_path / "state.json",
                create=True,
                enable_stream=True,
                verify=True,
            )
            assert await run_mirror(options) == DONE
            copied = (await right.call("Scan", {"TableName": "copy"}))["Items"]
            assert sorted(copied, key=lambda item: int(item["pk"]["N"])) == items
            described = (await right.call("DescribeTable", {"TableName": "copy"}))["Table"]
            assert described["GlobalSecondaryIndexes"][0]["IndexName"] == "by_v"
            answer = await right.call("ListTagsOfResource", {"ResourceArn": described["TableArn"]})
            assert answer["Tags"] == [{"Key": "team", "Value": "a"}]
            answer = await right.call("DescribeTimeToLive", {"TableName": "copy"})
            assert answer["TimeToLiveDescription"]["AttributeName"] == "expires"

"""With ``--regions apart``, the region of a request's signature selects the tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from time import time

import pytest

from tests.support.clients.clients import refusal
from tests.support.clients.regional import RegionalClient, regional_clients, streams_client
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import definition, unique_name, wait_until_active
from tests.support.tables.ttl import switch, wait_until

pytestmark = pytest.mark.ours_alone("the server is started with an option of its own")

EAST, WEST = "us-east-1", "us-west-2"
STREAM = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server("--regions", "apart", "--copy-messages") as server:
        yield server


@pytest.fixture
def both(server: Server) -> Iterator[list[RegionalClient]]:
    with regional_clients(server.endpoint, EAST, WEST) as clients:
        yield clients


@pytest.fixture
def name(both: list[RegionalClient]) -> str:
    """A table of the same name in each region."""
    name = unique_name()
    for client in both:
        client("CreateTable", definition("pk:S", name=name, **STREAM))
    return name


def item(region: str, key: str = "a") -> dict[str, dict[str, str]]:
    return {"pk": {"S": key}, "region": {"S": region}}


def put(client: RegionalClient, name: str, key: str = "a") -> None:
    client("PutItem", {"TableName": name, "Item": item(client.region, key)})


def get(client: RegionalClient, name: str, key: str = "a") -> object:
    return client("GetItem", {"TableName": name, "Key": {"pk": {"S": key}}}).get("Item")


def test_tables_of_one_name_have_items_of_their_own(both, name):
    for client in both:
        put(client, name)
    assert [get(client, name) for client in both] == [item(EAST), item(WEST)]
    east, west = both
    east("DeleteTable", {"TableName": name})
    assert get(west, name) == item(WEST)
    assert east.refused("DescribeTable", {"TableName": name}).type == "ResourceNotFoundException"


def test_a_region_lists_its_own_tables(server):
    with regional_clients(server.endpoint, "eu-west-1", "eu-west-2") as (one, other):
        one("CreateTable", definition("pk:S", name="of-one"))
        assert one("ListTables", {})["TableNames"] == ["of-one"]
        assert other("ListTables", {})["TableNames"] == []


def test_arns_name_the_region_of_the_request(both, name):
    for client in both:
        table = client("DescribeTable", {"TableName": name})["Table"]
        prefix = f"arn:aws:dynamodb:{client.region}:000000000000:table/{name}"
        assert table["TableArn"] == prefix
        assert table["LatestStreamArn"].startswith(f"{prefix}/stream/")


def test_streams_show_the_changes_of_their_own_region(server, both, name):
    put(both[1], name, "only-in-the-west")
    counts = []
    for client in both:
        arn = client("DescribeTable", {"TableName": name})["Table"]["LatestStreamArn"]
        with streams_client(server.endpoint, client.region) as streams:
            listed = streams("ListStreams", {"TableName": name})["Streams"]
            assert [stream["StreamArn"] for stream in listed] == [arn]
            shards = streams("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
            records = []
            for shard in shards:
                wanted = {
                    "StreamArn": arn,
                    "ShardId": shard["ShardId"],
                    "ShardIteratorType": "TRIM_HORIZON",
                }
                start = streams("GetShardIterator", wanted)["ShardIterator"]
                records += streams("GetRecords", {"ShardIterator": start})["Records"]
            counts.append([record["awsRegion"] for record in records])
    assert counts == [[], [WEST]]


def test_an_iterator_of_another_region_is_refused(server, both, name):
    arn = both[0]("DescribeTable", {"TableName": name})["Table"]["LatestStreamArn"]
    with (
        streams_client(server.endpoint, EAST) as east,
        streams_client(server.endpoint, WEST) as west,
    ):
        shard = east("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"][0]
        wanted = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "LATEST"}
        start = east("GetShardIterator", wanted)["ShardIterator"]
        refused = west.refused("GetRecords", {"ShardIterator": start})
    assert refused == (
        "ResourceNotFoundException",
        f"Requested resource not found: Stream: {arn} not found",
    )


def test_a_client_token_counts_in_its_own_region(both, name):
    token = unique_name()
    for client, key in zip(both, ("a", "b"), strict=True):
        # Within a region, the same token with another content would be refused.
        put_action = {"Put": {"TableName": name, "Item": item(client.region, key)}}
        client("TransactWriteItems", {"TransactItems": [put_action], "ClientRequestToken": token})
    assert get(both[0], name, "b") is None
    assert get(both[1], name, "b") == item(WEST, "b")


def test_a_token_of_a_statement_counts_in_its_own_region(both, name):
    token = unique_name()
    for client, key in zip(both, ("a", "b"), strict=True):
        statement = f"""INSERT INTO "{name}" VALUE {{'pk': '{key}'}}"""
        request = {"TransactStatements": [{"Statement": statement}], "ClientRequestToken": token}
        client("ExecuteTransaction", request)
    assert get(both[1], name, "b") == {"pk": {"S": "b"}}


def test_batches_and_transactions_stay_in_their_region(both, name):
    east, west = both
    write = {"RequestItems": {name: [{"PutRequest": {"Item": item(EAST)}}]}}
    east("BatchWriteItem", write)
    keys = {"RequestItems": {name: {"Keys": [{"pk": {"S": "a"}}]}}}
    assert east("BatchGetItem", keys)["Responses"] == {name: [item(EAST)]}
    assert west("BatchGetItem", keys)["Responses"] == {name: []}
    read = {"TransactItems": [{"Get": {"TableName": name, "Key": {"pk": {"S": "a"}}}}]}
    assert east("TransactGetItems", read)["Responses"] == [{"Item": item(EAST)}]
    assert west("TransactGetItems", read)["Responses"] == [{}]


def backup_status(client: RegionalClient, arn: str) -> object:
    described = client("DescribeBackup", {"BackupArn": arn})["BackupDescription"]
    return described["BackupDetails"]["BackupStatus"]


def test_backups_belong_to_their_region(both, name):
    east, west = both
    put(east, name)
    made = east("CreateBackup", {"TableName": name, "BackupName": "kept"})["BackupDetails"]
    arn = made["BackupArn"]
    assert arn.startswith(f"arn:aws:dynamodb:{EAST}:")
    wait_until(lambda: backup_status(east, arn) == "AVAILABLE")
    assert west("ListBackups", {"TableName": name})["BackupSummaries"] == []
    refused = west.refused("DescribeBackup", {"BackupArn": arn})
    assert refused == ("BackupNotFoundException", f"Backup not found: {arn}")
    restore = {"BackupArn": arn, "TargetTableName": unique_name("restored")}
    assert west.refused("RestoreTableFromBackup", restore).type == "BackupNotFoundException"
    east("RestoreTableFromBackup", restore)
    wait_until_active(east, restore["TargetTableName"])
    assert get(east, restore["TargetTableName"]) == item(EAST)
    assert restore["TargetTableName"] not in west("ListTables", {})["TableNames"]


def test_items_expire_in_the_region_that_asked_for_it(both, name):
    east, west = both
    switch(west, name, "expires")
    for client in both:
        past = {"pk": {"S": "past"}, "expires": {"N": str(int(time()) - 60)}}
        client("PutItem", {"TableName": name, "Item": past})
    wait_until(lambda: get(west, name, "past") is None)
    assert get(east, name, "past") is not None


def test_time_to_live_is_switched_for_one_region(both, name):
    specification = {"Enabled": True, "AttributeName": "expires"}
    both[1]("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": specification})
    states = [
        client("DescribeTimeToLive", {"TableName": name})["TimeToLiveDescription"][
            "TimeToLiveStatus"
        ]
        for client in both
    ]
    assert states == ["DISABLED", "ENABLED"]


def test_tags_belong_to_one_region(both, name):
    arn = both[0]("DescribeTable", {"TableName": name})["Table"]["TableArn"]
    both[0].send("TagResource", {"ResourceArn": arn, "Tags": [{"Key": "a", "Value": "b"}]})
    other = arn.replace(EAST, WEST)
    assert both[1]("ListTagsOfResource", {"ResourceArn": other})["Tags"] == []


def table_arn(name: str) -> str:
    return f"arn:aws:dynamodb:{EAST}:000000000000:table/{name}"


KEY = {"Key": {"pk": {"S": "a"}}}
ITEM = {"Item": {"pk": {"S": "a"}}}
BY_TABLE_NAME = {
    "CreateTable": {
        name: value for name, value in definition("pk:S").items() if name != "TableName"
    },
    "DeleteItem": KEY,
    "DeleteTable": {},
    "DescribeContributorInsights": {},
    "DescribeKinesisStreamingDestination": {},
    "DescribeTable": {},
    "DescribeTimeToLive": {},
    "GetItem": KEY,
    "ListContributorInsights": {},
    "PutItem": ITEM,
    "Query": {
        "KeyConditionExpression": "pk = :a",
        "ExpressionAttributeValues": {":a": {"S": "a"}},
    },
    "Scan": {},
    "UpdateContributorInsights": {"ContributorInsightsAction": "ENABLE"},
    "UpdateItem": KEY,
    "UpdateTable": {"DeletionProtectionEnabled": False},
    "UpdateTimeToLive": {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "e"}},
}


@pytest.mark.parametrize("operation", BY_TABLE_NAME)
def test_a_table_arn_of_another_region_names_no_table(both, name, operation):
    refused = both[1].refused(operation, {"TableName": table_arn(name), **BY_TABLE_NAME[operation]})
    assert refused == ("ResourceNotFoundException", "Requested resource not found")
    # An ARN of the region itself is equivalent to a name.
    own = table_arn(name).replace(EAST, WEST)
    assert both[1]("DescribeTable", {"TableName": own})["Table"]["TableName"] == name


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("CreateBackup", {"BackupName": "one"}),
        ("DescribeContinuousBackups", {}),
        ("ListBackups", {}),
    ],
)
def test_operations_on_backups_know_no_table_of_another_region(both, name, operation, members):
    arn = table_arn(name)
    refused = both[1].refused(operation, {"TableName": arn, **members})
    assert refused == ("TableNotFoundException", f"Table not found: {arn}")


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("ListTagsOfResource", {}),
        ("TagResource", {"Tags": [{"Key": "a", "Value": "b"}]}),
        ("UntagResource", {"TagKeys": ["a"]}),
    ],
)
def test_a_resource_of_another_region_is_not_found(both, name, operation, members):
    arn = table_arn(name)
    refused = both[1].refused(operation, {"ResourceArn": arn, **members})
    assert refused == (
        "ResourceNotFoundException",
        f"Requested resource not found: ResourcArn: {arn} not found",
    )


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("GetResourcePolicy", {}),
        ("DeleteResourcePolicy", {}),
        ("PutResourcePolicy", {"Policy": "{}"}),
    ],
)
def test_a_policy_of_another_regions_resource_is_refused(both, name, operation, members):
    arn = table_arn(name)
    assert both[1].refused(operation, {"ResourceArn": arn, **members}) == (
        "ValidationException",
        (
            "One or more parameter values were invalid: Invalid TableArn: Invalid ResourceArn "
            f"provided as input {arn}"
        ),
    )


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        ("BatchGetItem", lambda arn: {"RequestItems": {arn: {"Keys": [KEY["Key"]]}}}),
        ("BatchWriteItem", lambda arn: {"RequestItems": {arn: [{"PutRequest": ITEM}]}}),
        ("TransactGetItems", lambda arn: {"TransactItems": [{"Get": {"TableName": arn, **KEY}}]}),
        (
            "TransactWriteItems",
            lambda arn: {"TransactItems": [{"Delete": {"TableName": arn, **KEY}}]},
        ),
        ("ExecuteStatement", lambda arn: {"Statement": f'SELECT * FROM "{arn}"'}),
        (
            "ExecuteTransaction",
            lambda arn: {
                "TransactStatements": [
                    {"Statement": f"""INSERT INTO "{arn}" VALUE {{'pk': 'a'}}"""}
                ]
            },
        ),
    ],
)
def test_no_request_for_several_items_reaches_another_region(both, name, operation, shape):
    refused = both[1].send(operation, shape(table_arn(name)))
    assert refused.status == 400
    # A transaction of statements is canceled for a missing table.
    reasons = refused.json.get("CancellationReasons", [{"Code": refusal(refused).type}])
    assert [reason["Code"].removesuffix("Exception") for reason in reasons] == ["ResourceNotFound"]
    assert both[0]("Scan", {"TableName": name})["Count"] == 0


def test_a_value_that_looks_like_an_arn_is_a_value(both, name):
    value = table_arn("other")
    statement = f"""INSERT INTO "{name}" VALUE {{'pk': '{value}'}}"""
    both[1]("ExecuteStatement", {"Statement": statement})
    assert both[1]("Scan", {"TableName": name})["Items"] == [{"pk": {"S": value}}]


def test_a_signature_without_a_region_is_refused(server):
    with regional_clients(server.endpoint, "", "us_east") as (none, wrong):
        refused = none.refused("ListTables", {})
        assert refused.type == "InvalidSignatureException"
        refused = wrong.refused("ListTables", {})
        assert refused.message == "Credential should be scoped to a valid region, not 'us_east'. "
        answer = wrong.send("ListTables", {}, {"Authorization": "AWS4-HMAC-SHA256 Credential=x"})
        assert answer.json["__type"].endswith("IncompleteSignatureException")


def test_access_keys_share_their_region(server):
    with (
        closing(RegionalClient(server.endpoint, "sa-east-1", "one")) as one,
        closing(RegionalClient(server.endpoint, "sa-east-1", "other")) as other,
    ):
        one("CreateTable", definition("pk:S", name="shared"))
        assert other("ListTables", {})["TableNames"] == ["shared"]

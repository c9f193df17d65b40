"""The server's answers: descriptions, stream records, and tokens that clients send back."""

from __future__ import annotations

from typing import Any, Final

from scribe import number, text

from tests.support.clients import WireClient
from tests.support.streams import drained, iterator_of, shards_of

DESCRIBED: Final = (
    "AttributeDefinitions",
    "CreationDateTime",
    "DeletionProtectionEnabled",
    "ItemCount",
    "KeySchema",
    "LatestStreamArn",
    "LatestStreamLabel",
    "StreamSpecification",
    "TableArn",
    "TableId",
    "TableName",
    "TableSizeBytes",
)
_COUNTED: Final = ("IndexName", "IndexSizeBytes", "ItemCount")


def described(wire: WireClient, name: str) -> dict[str, Any]:
    """The members of a table's description that don't change without writes."""
    table = wire("DescribeTable", {"TableName": name})["Table"]
    found = {member: table[member] for member in DESCRIBED if member in table}
    for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        # Members that change are in the states recorded elsewhere.
        lasting = [
            each for each in table.get(kind, ()) if each.get("IndexStatus", "ACTIVE") == "ACTIVE"
        ]
        if lasting:
            found[kind] = [{member: each[member] for member in _COUNTED} for each in lasting]
    return found


def stream(streams: WireClient, arn: str) -> dict[str, Any]:
    """The shards of a stream, and of each record its event id, sequence number and name."""
    shards = shards_of(streams, arn)
    return {
        "StreamArn": arn,
        "shards": shards,
        "records": {
            shard["ShardId"]: [
                [record["eventID"], record["dynamodb"]["SequenceNumber"], record["eventName"]]
                for record in drained(streams, iterator_of(streams, arn, shard["ShardId"]))[0]
            ]
            for shard in shards
        },
    }


def latest_stream(wire: WireClient, name: str) -> str:
    """The ARN of a table's stream."""
    return str(wire("DescribeTable", {"TableName": name})["Table"]["LatestStreamArn"])


def handed_out(wire: WireClient, streams: WireClient) -> dict[str, Any]:
    """Shard iterators and a NextToken, each with its result."""
    arn = latest_stream(wire, "Accounts")
    iterators = []
    for shard in shards_of(streams, arn):
        iterator = iterator_of(streams, arn, shard["ShardId"])
        records = drained(streams, iterator)[0]
        if len(records) > 1:
            one = streams("GetRecords", {"ShardIterator": iterator, "Limit": 1})
            numbers = [each["dynamodb"]["SequenceNumber"] for each in records[1:]]
            iterators.append({"ShardIterator": one["NextShardIterator"], "numbers": numbers})
    assert iterators
    statement = {"Statement": "SELECT * FROM Orders WHERE total > ?", "Parameters": [number(50)]}
    items = wire("ExecuteStatement", statement)["Items"]
    page = wire("ExecuteStatement", {**statement, "Limit": 10})
    return {
        "iterators": iterators,
        "statement": {**statement, "NextToken": page["NextToken"]},
        "statement_items": items[len(page["Items"]) :],
    }


def transfer(amount: int) -> dict[str, Any]:
    """A transaction of every kind of write, with a token."""

    def keyed(account: str) -> dict[str, Any]:
        return {"TableName": "Accounts", "Key": {"id": text(account)}}

    exists = {
        "ConditionExpression": "attribute_exists(#id)",
        "ExpressionAttributeNames": {"#id": "id"},
    }
    added = {
        account: {
            **keyed(account),
            "UpdateExpression": "ADD balance :amount",
            **exists,
            "ExpressionAttributeValues": {":amount": number(sign * amount)},
        }
        for account, sign in (("a", -1), ("b", 1))
    }
    opened = {"id": text("f"), "balance": number(0)}
    return {
        "ClientRequestToken": "transfer-1",
        "TransactItems": [
            *({"Update": each} for each in added.values()),
            {"Put": {"TableName": "Accounts", "Item": opened}},
            {"Delete": keyed("e")},
            {"ConditionCheck": keyed("c") | exists},
        ],
    }


def statements(amount: int) -> dict[str, Any]:
    """A transaction of statements with a token."""
    return {
        "ClientRequestToken": "transfer-2",
        "TransactStatements": [
            {
                "Statement": f"UPDATE Accounts SET balance = balance {sign} ? WHERE id = ?",
                "Parameters": [number(amount), text(account)],
            }
            for account, sign in (("b", "-"), ("c", "+"))
        ],
    }

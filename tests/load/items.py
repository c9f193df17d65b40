"""The table and the items of the load."""

from __future__ import annotations

from typing import Any

Item = dict[str, dict[str, Any]]

# Ten items per partition key, so index queries have an order.
_COLLECTION_ITEMS = 10

_TEXT = (
    "Every partition of every table has one owner and one mailbox, and its writes happen one "
    "after another. "
)


def create_table(name: str, *, indexed: bool = True) -> dict[str, Any]:
    """CreateTable's body: an on-demand table, by default with a local index of all attributes."""
    body: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
    }
    if indexed:
        body["AttributeDefinitions"].append({"AttributeName": "rank", "AttributeType": "N"})
        body["LocalSecondaryIndexes"] = [
            {
                "IndexName": "by_rank",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "rank", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ]
    return body


def key(number: int) -> Item:
    """The key of an item."""
    return {
        "pk": {"S": f"customer#{number // _COLLECTION_ITEMS:08}"},
        "sk": {"S": f"order#{number % _COLLECTION_ITEMS:04}"},
    }


def table_item(number: int, version: int = 0) -> Item:
    """An item of about 300 B by DynamoDB's rules, in ten attributes; versions differ."""
    return {
        **key(number),
        "rank": {"N": str((number * 31 + version * 17) % 1_000)},
        "version": {"N": str(version)},
        "title": {"S": f"Order {number} of a customer, version {version}"},
        "price": {"N": f"{number % 500}.{version % 9 + 1}"},
        "open": {"BOOL": version % 2 == 0},
        "tags": {"SS": ["express", "gift", f"zone{number % 8}"]},
        "address": {"M": {"city": {"S": "Lisboa"}, "zip": {"S": f"{number % 10_000:04}"}}},
        "note": {"S": _TEXT[number % 40 :] + _TEXT[: 20 + number % 40]},
    }

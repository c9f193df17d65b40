"""The table schemas of the scenarios, with every kind of key and local index."""

from __future__ import annotations

from typing import Any, NamedTuple


class LocalIndex(NamedTuple):
    """A local secondary index: its sort attribute and its projection."""

    name: str
    sort: tuple[str, str]
    projection: dict[str, Any]


class Schema(NamedTuple):
    """The key of a table and its local indexes; attributes are (name, type)."""

    partition: tuple[str, str]
    sort: tuple[str, str] | None = None
    indexes: tuple[LocalIndex, ...] = ()

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """The attributes of the primary key."""
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    def create_table(self, name: str, *, on_demand: bool) -> dict[str, Any]:
        """The body of a CreateTable."""
        attributes = dict((*self.key, *(index.sort for index in self.indexes)))
        body: dict[str, Any] = {
            "TableName": name,
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": type_name}
                for name, type_name in attributes.items()
            ],
            "KeySchema": _key_schema(self.partition, self.sort),
        }
        if on_demand:
            body["BillingMode"] = "PAY_PER_REQUEST"
        else:
            body["ProvisionedThroughput"] = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
        if self.indexes:
            body["LocalSecondaryIndexes"] = [
                {
                    "IndexName": index.name,
                    "KeySchema": _key_schema(self.partition, index.sort),
                    "Projection": index.projection,
                }
                for index in self.indexes
            ]
        return body


def _key_schema(partition: tuple[str, str], sort: tuple[str, str] | None) -> list[dict[str, str]]:
    schema = [{"AttributeName": partition[0], "KeyType": "HASH"}]
    if sort is not None:
        schema.append({"AttributeName": sort[0], "KeyType": "RANGE"})
    return schema


ALL = LocalIndex("byName", ("d", "S"), {"ProjectionType": "ALL"})
KEYS = LocalIndex("byCount", ("n", "N"), {"ProjectionType": "KEYS_ONLY"})
INCLUDE = LocalIndex(
    "byBytes", ("e", "B"), {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "m"]}
)

SCHEMAS = (
    Schema(("p", "S")),
    Schema(("p", "N")),
    Schema(("p", "S"), ("s", "N"), (ALL, KEYS, INCLUDE)),
    Schema(("p", "S"), ("s", "N"), (ALL, KEYS, INCLUDE)),
    Schema(("p", "S"), ("s", "S"), (KEYS,)),
    Schema(("p", "N"), ("s", "B"), (ALL,)),
    Schema(("p", "B"), ("s", "S")),
)

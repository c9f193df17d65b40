"""Creates tables with unique names for tests, from short definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from uuid import uuid4

# Names differ between test runs, too, because the server of ``--endpoint`` keeps its tables.
_RUN = uuid4().hex[:8]
_numbers = count(1)

Call = Callable[[str, dict[str, Any]], dict[str, Any]]


def unique_name(prefix: str = "table") -> str:
    """A table name, partition key or attribute value that was never used before."""
    return f"{prefix}-{_RUN}-{next(_numbers)}"


def local_index(
    name: str,
    partition: str,
    sort: str,
    projection: str = "ALL",
    include: tuple[str, ...] = (),
) -> dict[str, Any]:
    """A local secondary index of a table's definition."""
    held: dict[str, Any] = {"ProjectionType": projection}
    if include:
        held["NonKeyAttributes"] = list(include)
    return {"IndexName": name, "KeySchema": key_schema(partition, sort), "Projection": held}


def global_index(
    name: str,
    *keys: str,
    projection: str = "ALL",
    include: tuple[str, ...] = (),
    **members: Any,
) -> dict[str, Any]:
    """A global secondary index of a table's definition.

    Keys are a partition and an optional sort attribute, or written ``name:HASH``, ``name:RANGE``.
    """
    schema = (
        [
            {"AttributeName": attribute, "KeyType": role}
            for attribute, role in (key.split(":") for key in keys)
        ]
        if ":" in keys[0]
        else key_schema(*keys)
    )
    held: dict[str, Any] = {"ProjectionType": projection}
    if include:
        held["NonKeyAttributes"] = list(include)
    return {"IndexName": name, "KeySchema": schema, "Projection": held, **members}


def key_schema(*names: str) -> list[dict[str, str]]:
    """A key schema of one or two attributes."""
    return [
        {"AttributeName": name, "KeyType": key_type}
        for name, key_type in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def definition(
    *keys: str, indexes: tuple[dict[str, Any], ...] = (), name: str = "", **members: Any
) -> dict[str, Any]:
    """A CreateTable request, on demand unless ``members`` say otherwise.

    Each key attribute is ``name:type``. The first one or two are the table's key, unless
    ``members`` has ``KeySchema``; the others are for indexes.
    """
    typed = [key.split(":") for key in keys]
    request = {
        "TableName": name or unique_name(),
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": type_name}
            for attribute, type_name in typed
        ],
        "KeySchema": key_schema(*[attribute for attribute, _ in typed[:2]]),
        "BillingMode": "PAY_PER_REQUEST",
    }
    if indexes:
        request["LocalSecondaryIndexes"] = list(indexes)
    return request | members


def wait_until_active(call: Call, name: str) -> dict[str, Any]:
    """Poll until the table is ACTIVE, and return its description."""
    while True:
        description: dict[str, Any] = call("DescribeTable", {"TableName": name})["Table"]
        if description["TableStatus"] == "ACTIVE":
            return description


def wait_until_indexes_active(call: Call, name: str) -> dict[str, Any]:
    """Poll until the table and all its global indexes are ACTIVE, and none is in deletion."""
    while True:
        description = wait_until_active(call, name)
        indexes = description.get("GlobalSecondaryIndexes", [])
        if all(index["IndexStatus"] == "ACTIVE" for index in indexes):
            return description


@contextmanager
def table(call: Call, *keys: str, **members: Any) -> Iterator[str]:
    """Create a table, wait until it is ACTIVE, and delete it afterwards; see ``definition``."""
    request = definition(*keys, **members)
    name: str = request["TableName"]
    call("CreateTable", request)
    wait_until_active(call, name)
    yield name
    call("DeleteTable", {"TableName": name})

"""Requests that add, change and delete the global indexes of a table, and their visible states."""

from __future__ import annotations

from typing import Any

from tests.rules.global_indexes.game_scores import provisioned
from tests.support.tables.tables import Call

State = tuple[str, bool | None]

PHASE_1: State = ("CREATING", False)
PHASE_2: State = ("CREATING", True)
ACTIVE: State = ("ACTIVE", None)


def adding(name: str, *keys_then_index: Any) -> dict[str, Any]:
    """An UpdateTable that adds an index; its key attributes come first, written ``name:type``."""
    *keys, index = keys_then_index
    typed = [key.split(":") for key in ("UserId:S", "GameTitle:S", *keys)]
    return {
        "TableName": name,
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": type_name}
            for attribute, type_name in typed
        ],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }


def deleting(name: str, *indexes: str) -> dict[str, Any]:
    """An UpdateTable that deletes indexes."""
    updates = [{"Delete": {"IndexName": index}} for index in indexes]
    return {"TableName": name, "GlobalSecondaryIndexUpdates": updates}


def updating(name: str, index: str, read: int, write: int) -> dict[str, Any]:
    """An UpdateTable that changes the throughput of an index."""
    update = {"IndexName": index, "ProvisionedThroughput": provisioned(read, write)}
    return {"TableName": name, "GlobalSecondaryIndexUpdates": [{"Update": update}]}


def states(call: Call, name: str) -> dict[str, State]:
    """The state of each global index: IndexStatus and Backfilling."""
    indexes = call("DescribeTable", {"TableName": name})["Table"].get("GlobalSecondaryIndexes", [])
    return {
        index["IndexName"]: (index["IndexStatus"], index.get("Backfilling")) for index in indexes
    }


def throughput_of(description: dict[str, Any]) -> tuple[int, int]:
    """The provisioned units of a table or an index as described, reads and writes."""
    throughput = description["ProvisionedThroughput"]
    return throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]

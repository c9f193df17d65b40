"""Writes to tables, and records their expected content."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from tests.support.clients import WireClient
from tests.support.table_backups import back_up
from tests.support.tables import definition

Item = dict[str, dict[str, Any]]


def text(value: str) -> dict[str, Any]:
    return {"S": value}


def number(value: float | str) -> dict[str, Any]:
    return {"N": str(value)}


def binary(value: bytes) -> dict[str, Any]:
    return {"B": b64encode(value).decode()}


class Scribe:
    """Writes over ``wire``, a client of the present server.

    ``changes`` has the old and the new image of each change of a table with a stream.
    """

    def __init__(self) -> None:
        self.wire: WireClient
        self.keys: dict[str, list[str]] = {}
        self.requests: dict[str, dict[str, Any]] = {}
        self.items: dict[str, list[Item]] = {}
        self.changes: dict[str, list[tuple[Item | None, Item | None]]] = {}
        self.backups: dict[str, dict[str, Any]] = {}

    def create(self, name: str, *keys: str, **members: Any) -> None:
        request = definition(*keys, name=name, **members)
        self.wire("CreateTable", request)
        self.requests[name] = request
        self.keys[name] = [key["AttributeName"] for key in request["KeySchema"]]
        self.items[name] = []
        if "StreamSpecification" in request:
            self.changes[name] = []

    def delete_table(self, name: str) -> None:
        self.wire("DeleteTable", {"TableName": name})
        for noted in (self.requests, self.keys, self.items):
            del noted[name]
        self.changes.pop(name, None)

    def put(self, name: str, *items: Item) -> None:
        for item in items:
            self.wire("PutItem", {"TableName": name, "Item": item})
            self.note(name, self.key(name, item), item)

    def update(self, name: str, key: Item, **attributes: dict[str, Any]) -> None:
        """Set attributes of an existing item."""
        request = {
            "TableName": name,
            "Key": key,
            "UpdateExpression": "SET " + ", ".join(f"#{each} = :{each}" for each in attributes),
            "ExpressionAttributeNames": {f"#{each}": each for each in attributes},
            "ExpressionAttributeValues": {f":{each}": attributes[each] for each in attributes},
        }
        self.wire("UpdateItem", request)
        self.note(name, key, self.item(name, key) | attributes)

    def delete(self, name: str, key: Item) -> None:
        self.wire("DeleteItem", {"TableName": name, "Key": key})
        self.note(name, key, None)

    def note(self, name: str, key: Item, new: Item | None) -> None:
        """Record that the item with that key is now ``new``."""
        items = self.items[name]
        old = next((item for item in items if self.key(name, item) == key), None)
        self.items[name] = [item for item in items if item is not old]
        if new is not None:
            self.items[name].append(new)
        if name in self.changes and old != new:
            self.changes[name].append((old, new))

    def sort_as_scanned(self) -> None:
        """Sort the items of each readable table in the order of a Scan."""
        for name, items in self.items.items():
            if items:
                scanned = self.wire("Scan", {"TableName": name, "ConsistentRead": True})
                assert sorted(scanned["Items"], key=str) == sorted(items, key=str), name
                self.items[name] = scanned["Items"]

    def key(self, name: str, item: Item) -> Item:
        return {attribute: item[attribute] for attribute in self.keys[name]}

    def item(self, name: str, key: Item) -> Item:
        return next(item for item in self.items[name] if self.key(name, item) == key)

    def back_up(self, name: str, backup: str) -> None:
        """Create a backup, wait until it is AVAILABLE, and record its content."""
        self.note_backup(name, backup, back_up(self.wire, name, backup))

    def note_backup(self, name: str, backup: str, arn: str) -> None:
        self.backups[backup] = {
            "BackupArn": arn,
            "TableName": name,
            "request": self.requests[name],
            "items": list(self.items[name]),
        }

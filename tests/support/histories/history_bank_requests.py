"""The items of a bank, and requests on them. Every write appends its transaction's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tests.support.histories.history import Item
from tests.support.histories.history_serial import Value, Write

TABLES: Final = ("bank-a", "bank-b", "bank-c")
BALANCE: Final = 100

# The ticket is one key of the history, and an item at one of ``TICKET_PLACES``.
TICKET: Final = "ticket"


class Place(NamedTuple):
    """The table and the primary key of an item."""

    table: str
    pk: str

    @property
    def key(self) -> Item:
        """The item's primary key."""
        return {"pk": {"S": self.pk}}


def _places(kind: str, count: int) -> list[Place]:
    """Places that alternate between the tables."""
    return [Place(TABLES[number % len(TABLES)], f"{kind}{number}") for number in range(count)]


# 20 items but 18 keys of a history, because the 3 places of the ticket are one key.
ACCOUNTS: Final = {place.pk: place for place in _places("account", 14)}
REGISTERS: Final = {place.pk: place for place in _places("register", 3)}
ITEMS: Final = ACCOUNTS | REGISTERS
TICKET_PLACES: Final = _places("ticket", 3)

_NAMES: Final = {"#names": "names", "#number": "number", "#last": "last"}
_SHOW: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def item_of(place: Place, value: Value) -> Item:
    """The item with this value. Conditions compare its attribute ``last``."""
    return {
        **place.key,
        "names": {"L": [{"S": name} for name in value.names]},
        "number": {"N": str(value.number)},
        "last": {"S": last_of(value)},
    }


def value_of(item: Item) -> Value:
    """The value of an item."""
    names = tuple(name["S"] for name in item["names"]["L"])
    return Value(names, int(item["number"]["N"]))


def last_of(value: Value) -> str:
    """The name of the last transaction that wrote the item."""
    return value.names[-1] if value.names else ""


def ticket_of(found: Sequence[Item | None]) -> Value:
    """The ticket's value, computed from the items at all its places at one moment."""
    there = [item for item in found if item is not None]
    # The checker reports a name that no write has, so it reports this value.
    return value_of(there[0]) if len(there) == 1 else Value((f"at {len(there)} places",))


def update(place: Place, name: str, write: Write) -> dict[str, Any]:
    """An Update, as an action of a transaction or as a single request."""
    body: dict[str, Any] = {
        "TableName": place.table,
        "Key": place.key,
        "UpdateExpression": "SET #names = list_append(#names, :names), #last = :name, "
        "#number = #number + :add",
        "ExpressionAttributeNames": _NAMES,
        "ExpressionAttributeValues": {
            ":names": {"L": [{"S": name}]},
            ":name": {"S": name},
            ":add": {"N": str(write.add)},
        },
        **_SHOW,
    }
    if write.least is not None:
        body["ConditionExpression"] = "#number >= :least"
        body["ExpressionAttributeValues"][":least"] = {"N": str(write.least)}
    return body


def put(place: Place, name: str, seen: Value, write: Write) -> dict[str, Any]:
    """A Put on the condition that the item has the last seen value."""
    return {
        "TableName": place.table,
        "Item": item_of(place, write.apply(name, seen)),
        **_if_last(seen),
    }


def check(place: Place, seen: Value) -> dict[str, Any]:
    """A ConditionCheck: the item has the last seen value."""
    return {"TableName": place.table, "Key": place.key, **_if_last(seen)}


def move(name: str, seen: Value, to: int) -> list[dict[str, Any]]:
    """The actions that move the ticket from its last seen place."""
    old, new = TICKET_PLACES[seen.number], TICKET_PLACES[to]
    return [
        {"Delete": {"TableName": old.table, "Key": old.key, **_if_last(seen)}},
        {
            "Put": {
                "TableName": new.table,
                "Item": item_of(new, Write(put=to).apply(name, seen)),
                "ConditionExpression": "attribute_not_exists(pk)",
            }
        },
    ]


def get(place: Place) -> dict[str, Any]:
    """A Get, as an action of a transaction or as a single request."""
    return {"TableName": place.table, "Key": place.key}


def _if_last(seen: Value) -> dict[str, Any]:
    return {
        "ConditionExpression": "#last = :seen",
        "ExpressionAttributeNames": {"#last": "last"},
        "ExpressionAttributeValues": {":seen": {"S": last_of(seen)}},
        **_SHOW,
    }

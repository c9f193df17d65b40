"""A bank's items, and the requests on them: every write appends its writer's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tests.support.histories.history import Item
from tests.support.histories.history_serial import Value, Write

TABLES: Final = ("bank-a", "bank-b", "bank-c")
BALANCE: Final = 100

# Its key in a history: the ticket is in the place where it was moved last.
TICKET: Final = "ticket"


class Place(NamedTuple):
    """The place of an item."""

    table: str
    pk: str

    @property
    def key(self) -> Item:
        """The item's primary key."""
        return {"pk": {"S": self.pk}}


def _places(kind: str, count: int) -> list[Place]:
    """Alternating between the tables."""
    return [Place(TABLES[number % len(TABLES)], f"{kind}{number}") for number in range(count)]


# Twenty items, but eighteen keys of a history, because the ticket's places are one key.
ACCOUNTS: Final = {place.pk: place for place in _places("account", 14)}
REGISTERS: Final = {place.pk: place for place in _places("register", 3)}
ITEMS: Final = ACCOUNTS | REGISTERS
TICKET_PLACES: Final = _places("ticket", 3)

_NAMES: Final = {"#names": "names", "#number": "number", "#last": "last"}
_SHOW: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def item_of(place: Place, value: Value) -> Item:
    """A value as an item; ``last`` is for conditions."""
    return {
        **place.key,
        "names": {"L": [{"S": name} for name in value.names]},
        "number": {"N": str(value.number)},
        "last": {"S": last_of(value)},
    }


def value_of(item: Item) -> Value:
    """An item as a value."""
    names = tuple(name["S"] for name in item["names"]["L"])
    return Value(names, int(item["number"]["N"]))


def last_of(value: Value) -> str:
    """The last writer."""
    return value.names[-1] if value.names else ""


def ticket_of(found: Sequence[Item | None]) -> Value:
    """The ticket, from the content of all its places at one moment."""
    there = [item for item in found if item is not None]
    # The checker reports a name that no write has.
    return value_of(there[0]) if len(there) == 1 else Value((f"at {len(there)} places",))


def update(place: Place, name: str, write: Write) -> dict[str, Any]:
    """An Update, as an action or as a request of its own."""
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
    """A Put over the last seen value."""
    return {
        "TableName": place.table,
        "Item": item_of(place, write.apply(name, seen)),
        **_if_last(seen),
    }


def check(place: Place, seen: Value) -> dict[str, Any]:
    """A ConditionCheck that an item has the last seen value."""
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
    """A Get, as an action or as a request of its own."""
    return {"TableName": place.table, "Key": place.key}


def _if_last(seen: Value) -> dict[str, Any]:
    return {
        "ConditionExpression": "#last = :seen",
        "ExpressionAttributeNames": {"#last": "last"},
        "ExpressionAttributeValues": {":seen": {"S": last_of(seen)}},
        **_SHOW,
    }

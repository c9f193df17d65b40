"""Random legacy parameters: Expected, AttributeUpdates, KeyConditions, QueryFilter, ScanFilter."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.requests import values

OPERATORS = {
    "EQ": 1, "NE": 1, "LE": 1, "LT": 1, "GE": 1, "GT": 1, "CONTAINS": 1, "NOT_CONTAINS": 1,
    "BEGINS_WITH": 1, "NULL": 0, "NOT_NULL": 0, "IN": 2, "BETWEEN": 2,
}  # fmt: skip


def condition(random: Random, attribute: str) -> dict[str, Any]:
    """A legacy condition; sometimes the operator does not allow the values."""
    operator = random.choice(tuple(OPERATORS))
    count = OPERATORS[operator] if random.random() < 0.93 else random.randint(0, 3)
    made: dict[str, Any] = {"ComparisonOperator": operator}
    if count or random.random() < 0.1:
        made["AttributeValueList"] = [values.attribute(random, attribute) for _ in range(count)]
    return made


def conditions(random: Random, exclude: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A QueryFilter or ScanFilter."""
    names = [name for name in values.ATTRIBUTES if name not in exclude]
    return {
        name: condition(random, name) for name in random.sample(names, random.choice((1, 1, 2)))
    }


def expected(random: Random) -> dict[str, Any]:
    """An Expected, in the old form (Value, Exists) or the newer one (ComparisonOperator)."""
    made: dict[str, Any] = {}
    for name in random.sample(tuple(values.ATTRIBUTES), random.choice((1, 1, 2))):
        choice = random.random()
        if choice < 0.3:
            made[name] = {"Value": values.attribute(random, name)}
            if random.random() < 0.3:
                made[name]["Exists"] = random.random() < 0.8
        elif choice < 0.5:
            made[name] = {"Exists": random.random() < 0.1}
        else:
            made[name] = condition(random, name)
            if random.random() < 0.1:
                made[name]["Value"] = values.attribute(random, name)
    return made


def updates(random: Random) -> dict[str, Any]:
    """An AttributeUpdates."""
    made: dict[str, Any] = {}
    for name in random.sample(tuple(values.ATTRIBUTES), random.choice((1, 2, 3))):
        choice = random.random()
        update: dict[str, Any] = {}
        if choice < 0.5:
            update = {"Value": values.attribute(random, name)}
            if random.random() < 0.7:
                update["Action"] = "PUT"
        elif choice < 0.7:
            update = {"Action": "DELETE"}
            if random.random() < 0.4:
                update["Value"] = values.attribute(random, name)
        else:
            update = {"Action": "ADD", "Value": values.attribute(random, name)}
        made[name] = update
    return made


def key_conditions(
    random: Random, partition: tuple[str, str], sort: tuple[str, str] | None
) -> dict[str, Any]:
    """A KeyConditions on a table's or an index's key."""
    made: dict[str, Any] = {
        partition[0]: {
            "ComparisonOperator": "EQ",
            "AttributeValueList": [values.key_value(random, partition[1])],
        }
    }
    if sort is not None and random.random() < 0.6:
        operator = random.choice(("EQ", "LE", "LT", "GE", "GT", "BEGINS_WITH", "BETWEEN"))
        if random.random() < 0.05:
            operator = random.choice(("NE", "IN", "CONTAINS", "NULL"))
        made[sort[0]] = {
            "ComparisonOperator": operator,
            "AttributeValueList": [
                values.key_value(random, sort[1]) for _ in range(OPERATORS[operator])
            ],
        }
    return made

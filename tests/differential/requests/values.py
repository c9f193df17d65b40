"""Random attribute values and items, from small domains so that equal values occur."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.requests.schemas import Schema

Value = dict[str, Any]

STRINGS = ("a", "b", "ab", "abc", "B", "é", "日本", "a b", "zz", "1")
NUMBERS = (
    "0", "1", "2", "3", "10", "-1", "-2.5", "1.5", "100", "0.01", "1e2", "-0", "+3", "007.50",
    "1E-130", "9.9999999999999999999999999999999999999E+125",
    "12345678901234567890123456789012345678", "-1E-130", "1e-20", "99999999999999999999",
)  # fmt: skip
BINARIES = ("YQ==", "YWI=", "YWJj", "AA==", "AAE=", "/w==", "enp6")
# Attribute names besides the keys, with the most frequent type of each.
ATTRIBUTES = {
    "a": None,
    "b": None,
    "c": "S",
    "d": "S",
    "n": "N",
    "e": "B",
    "m": "M",
    "l": "L",
    "ss": "SS",
    "ns": "NS",
    "bs": "BS",
    "t": "BOOL",
    "u": "NULL",
    # These names need a placeholder in expressions.
    "size": "N",
    "x.y": "S",
    "x-y": "N",
    "ü": "S",
}
MEMBERS = ("x", "y", "z")

BAD_VALUES: tuple[tuple[str, Any], ...] = (
    ("empty value", {}),
    ("unknown type", {"X": "a"}),
    ("two types", {"S": "a", "N": "1"}),
    ("number not numeric", {"N": "abc"}),
    ("number empty", {"N": ""}),
    ("number with blank", {"N": " 1"}),
    ("number too big", {"N": "1E126"}),
    ("number too small", {"N": "1E-131"}),
    ("number too long", {"N": "1" * 39}),
    ("number hexadecimal", {"N": "0x10"}),
    ("number infinite", {"N": "Infinity"}),
    ("number NaN", {"N": "NaN"}),
    ("NULL false", {"NULL": False}),
    ("SS empty", {"SS": []}),
    ("NS empty", {"NS": []}),
    ("BS empty", {"BS": []}),
    ("SS duplicate", {"SS": ["a", "b", "a"]}),
    ("NS duplicate", {"NS": ["1", "1.0"]}),
    ("BS duplicate", {"BS": ["YQ==", "YQ=="]}),
    ("NS not numeric", {"NS": ["1", "x"]}),
    ("base64 length", {"B": "YQ"}),
    ("base64 character", {"B": "YQ=*"}),
    ("nested empty value", {"L": [{}]}),
    ("nested bad number", {"M": {"x": {"N": "x"}}}),
    ("nested empty set", {"L": [{"SS": []}]}),
    ("too deep", None),
)


def deep(levels: int) -> Value:
    """A value nested this many levels deep."""
    value: Value = {"S": "x"}
    for level in range(levels):
        value = {"L": [value]} if level % 2 else {"M": {"x": value}}
    return value


def bad_value(random: Random) -> tuple[str, Any]:
    """An invalid value, and a description of its fault."""
    name, value = random.choice(BAD_VALUES)
    if value is None:
        return name, deep(33)
    return name, value


def value(random: Random, type_name: str | None = None, level: int = 0) -> Value:
    """A valid value, of the type if one is given."""
    if type_name is None:
        type_name = random.choices(
            ("S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "M", "L"),
            (5, 5, 2, 1, 1, 1, 1, 1, 2, 2),
        )[0]
    if level > 2 and type_name in "ML":
        type_name = "S"
    match type_name:
        case "S":
            return {"S": random.choice(STRINGS) if random.random() < 0.95 else ""}
        case "N":
            return {"N": random.choice(NUMBERS[:10] if random.random() < 0.8 else NUMBERS)}
        case "B":
            return {"B": random.choice(BINARIES)}
        case "BOOL":
            return {"BOOL": random.random() < 0.5}
        case "NULL":
            return {"NULL": True}
        case "SS":
            return {"SS": random.sample(STRINGS, random.randint(1, 3))}
        case "NS":
            return {"NS": random.sample(NUMBERS[:10], random.randint(1, 3))}
        case "BS":
            return {"BS": random.sample(BINARIES, random.randint(1, 3))}
        case "M":
            members = random.sample(MEMBERS, random.randint(0, 3))
            return {"M": {name: value(random, level=level + 1) for name in members}}
    return {"L": [value(random, level=level + 1) for _ in range(random.randint(0, 3))]}


def attribute(random: Random, name: str) -> Value:
    """A value for the attribute with this name, mostly of the type in ``ATTRIBUTES``."""
    usual = ATTRIBUTES[name]
    return value(random, usual if random.random() < 0.9 else None)


def key_value(random: Random, type_name: str) -> Value:
    """A valid key value, from a few values, so that keys repeat."""
    match type_name:
        case "S":
            return {"S": random.choice(STRINGS[:5])}
        case "N":
            return {"N": random.choice((*NUMBERS[:6], "1e0", "1.0"))}
    return {"B": random.choice(BINARIES[:5])}


def key(random: Random, schema: Schema) -> dict[str, Value]:
    """A valid primary key."""
    return {name: key_value(random, type_name) for name, type_name in schema.key}


def item(random: Random, schema: Schema) -> dict[str, Value]:
    """A valid item; its index key attributes have their declared types."""
    made = key(random, schema)
    names = random.sample(tuple(ATTRIBUTES), random.randint(0, 7))
    # Maps and lists are more frequent, so that document paths exist.
    names += [name for name in ("m", "l") if name not in names and random.random() < 0.4]
    for name in names:
        made[name] = attribute(random, name)
    for index in schema.indexes:
        name, type_name = index.sort
        if name in made:
            made[name] = key_value(random, type_name)
    return made

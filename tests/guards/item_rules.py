"""Rules for keys, index keys, sizes and results, for every member that holds an item or key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from dynactor.model.limits import ITEM_SIZE_BYTES, PARTITION_KEY_BYTES, SORT_KEY_BYTES
from tests.guards.rules import Broken, Reason, Rule, given, later, named
from tests.guards.sites import Request, Site
from tests.guards.valid_requests import (
    DEEPEST_LEVELS,
    HELD,
    KEY,
    TABLE,
    WHERE_HELD,
    base,
    equal,
    expressing,
    legacy_base,
    nested,
)

Item = dict[str, Any]

_KEYS: Final = ("Item", "Key", "Keys", "ExclusiveStartKey", "Statement")
_NO_MATCH: Final = "does not match the schema|starting key is invalid"


def _literal(value: Item) -> str:
    ((type_name, content),) = value.items()
    return f"'{content}'" if type_name == "S" else str(content)


def _statements(key: Item) -> dict[str, str]:
    """Statements on an item with this key."""
    where = " AND ".join(f"{name} = {_literal(value)}" for name, value in key.items())
    inserted = ", ".join(f"'{name}': {_literal(value)}" for name, value in key.items())
    return {
        "SELECT": f'SELECT * FROM "{TABLE}" WHERE {where}',
        "INSERT": f'INSERT INTO "{TABLE}" VALUE {{{inserted}}}',
        "UPDATE": f'UPDATE "{TABLE}" SET v = 1 WHERE {where}',
        "DELETE": f'DELETE FROM "{TABLE}" WHERE {where}',
    }


def _with_key(site: Site, member: str, key: Item) -> dict[str, Request]:
    if member == "Statement":
        return {kind: base(site) | {member: text} for kind, text in _statements(key).items()}
    return {"": base(site) | {member: [key] if member == "Keys" else key}}


def _key_rule(
    name: str, message: str, make: Callable[[], Item], members: tuple[str, ...] = _KEYS
) -> Rule:
    def broken(site: Site, member: str) -> Broken:
        # Leave out SELECT: with a missing or invalid key, a SELECT is a valid scan.
        variants = [
            variant
            for variant in _with_key(site, member, KEY)
            if variant != "SELECT" or name in _OF_SELECTS
        ]
        return later(lambda: _with_key(site, member, make()), variants)

    return Rule(name, message, named(*members), broken)


_OF_SELECTS: Final = ("the type of keys",)


def _text(characters: int) -> Item:
    return {"S": "x" * characters}


def _written(site: Site, member: str, attribute: str, value: Item) -> dict[str, Request]:
    """Structures that write this attribute."""
    match member:
        case "Item":
            return {"": base(site) | {member: KEY | {attribute: value}}}
        case "UpdateExpression":
            part = base(site) | {"Key": HELD}
            return {
                "": expressing(part, member, f"SET {attribute} = :v", values={":v": value}),
            }
        case "AttributeUpdates":
            update = {"Action": "PUT", "Value": value}
            return {"": legacy_base(site) | {"Key": HELD, member: {attribute: update}}}
    return {
        "INSERT": base(site)
        | {
            "Statement": f'INSERT INTO "{TABLE}" '
            f"VALUE {{'pk': 'a', 'sk': 'c', '{attribute}': ?}}",
            "Parameters": [value],
        },
        "UPDATE": base(site)
        | {
            "Statement": f'UPDATE "{TABLE}" SET {attribute} = ? {WHERE_HELD}',
            "Parameters": [value],
        },
    }


_WRITING: Final = ("Item", "UpdateExpression", "AttributeUpdates", "Statement")


def _writing_rule(name: str, message: str, attribute: str, make: Callable[[], Item]) -> Rule:
    def broken(site: Site, member: str) -> Broken:
        variants = _written(site, member, attribute, {"S": "a"})
        return later(lambda: _written(site, member, attribute, make()), variants)

    return Rule(name, message, named(*_WRITING), broken)


def _updating_rule(name: str, message: str, text: str, values: Item | None = None) -> Rule:
    """A rule about the result of an update; ``text`` is the same in both languages."""

    def broken(site: Site, member: str) -> Broken:
        part = base(site)
        if member == "Statement":
            statement = f'UPDATE "{TABLE}" {text} {WHERE_HELD}'
            return {"": lambda: part | {"Statement": statement}}
        return {"": lambda: expressing(part | {"Key": HELD}, member, text, values=values)}

    return Rule(name, message, named("UpdateExpression", "Statement"), broken)


def _key_written(site: Site, member: str) -> Broken:
    part = base(site)
    match member:
        case "AttributeUpdates":
            update = {"Action": "PUT", "Value": {"S": "x"}}
            return {"": lambda: legacy_base(site) | {member: {"sk": update}}}
        case "Statement":
            statement = f"UPDATE \"{TABLE}\" SET sk = 'x' {WHERE_HELD}"
            return {"": lambda: part | {member: statement}}
    return {"": lambda: expressing(part, member, "SET sk = :v", values={":v": {"S": "x"}})}


def _conditioned(site: Site, member: str) -> Broken:
    """A request whose condition is false."""
    part = base(site)
    match member:
        case "Expected":
            return {"": lambda: legacy_base(site) | {member: {"v": equal({"S": "no"})}}}
        case "Statement":
            update = f"UPDATE \"{TABLE}\" SET w = 1 {WHERE_HELD} AND v = 'no'"
            delete = f"DELETE FROM \"{TABLE}\" {WHERE_HELD} AND v = 'no'"
            return given({"UPDATE": part | {member: update}, "DELETE": part | {member: delete}})
    return {"": lambda: expressing(part, member, "v = :no", values={":no": {"S": "no"}})}


def _large_in_an_index(site: Site, member: str) -> Broken:
    """An item that is too large together with its entry in the local index."""
    if member != "Item":
        # HELD has no attribute of the index.
        written = _written(site, member, "l", {"S": "a"})
        return given({kind: part for kind, part in written.items() if kind != "INSERT"})
    item = KEY | {"l": {"S": "a"}, "v": {"S": "x" * (ITEM_SIZE_BYTES // 2)}}
    return {"": lambda: base(site) | {member: item}}


def _emptied_in_a_transaction(site: Site, member: str) -> Broken:
    if "TransactItems" not in site.path:
        return Reason.NO_ACTIONS
    values = {"pk": "a key"}
    if member == "Item":
        values |= {"l": "a local index key", "g": "a global index key"}
    return given(
        {what: base(site) | {member: KEY | {name: {"S": ""}}} for name, what in values.items()}
    )


def _nested_beside_an_expression(site: Site, member: str) -> Broken:
    """A key that nests too deep, in an action with an invalid condition."""
    if "TransactItems" not in site.path or "ConditionExpression" not in site.members:
        return Reason.NO_CONDITIONED_ACTION
    part = base(site) | {"ConditionExpression": "v ="}
    return given({"": part | {member: KEY | {"pk": nested(DEEPEST_LEVELS + 1)}}})


ITEM_RULES: Final = (
    _key_rule(
        "the whole key",
        rf"{_NO_MATCH}|Missing the key sk|should be present|Where clause does not contain",
        lambda: {"pk": {"S": "a"}},
    ),
    _key_rule(
        "nothing but the key",
        rf"{_NO_MATCH}|ConditionalCheckFailed",
        lambda: KEY | {"v": {"S": "a"}},
        ("Key", "Keys", "ExclusiveStartKey"),
    ),
    _key_rule(
        "the type of keys",
        rf"{_NO_MATCH}|Type mismatch for key sk|schema type|unsupported|Key attribute",
        lambda: KEY | {"sk": {"N": "1"}},
    ),
    _key_rule("keys are not empty", "empty string value", lambda: KEY | {"sk": {"S": ""}}),
    _key_rule(
        "partition keys are not empty", "empty string value", lambda: KEY | {"pk": {"S": ""}}
    ),
    _key_rule(
        "the length of partition keys",
        "Size of hashkey",
        lambda: KEY | {"pk": {"S": "x" * (PARTITION_KEY_BYTES + 1)}},
    ),
    _key_rule(
        "the length of sort keys",
        "size of all range keys",
        lambda: KEY | {"sk": {"S": "x" * (SORT_KEY_BYTES + 1)}},
    ),
    *(
        rule
        for kind, attribute, limit_bytes in (
            ("local", "l", SORT_KEY_BYTES),
            ("global", "g", PARTITION_KEY_BYTES),
        )
        for rule in (
            _writing_rule(
                f"the type of {kind} index keys",
                "Type mismatch for Index Key",
                attribute,
                lambda: {"N": "1"},
            ),
            _writing_rule(
                f"{kind} index keys are not empty",
                "empty string value",
                attribute,
                lambda: {"S": ""},
            ),
            _writing_rule(
                f"the length of {kind} index keys",
                "Size of hashkey|size of all range keys",
                attribute,
                partial(_text, limit_bytes + 1),
            ),
        )
    ),
    _writing_rule(
        "the size of items",
        "[Ii]tem size|size of the item|Item collection",
        "v",
        lambda: {"S": "x" * ITEM_SIZE_BYTES},
    ),
    Rule(
        "the size of items with their index entries",
        "[Ii]tem size",
        named(*_WRITING),
        _large_in_an_index,
    ),
    Rule(
        "expressions before nesting",
        "Syntax error",
        named("Key"),
        _nested_beside_an_expression,
    ),
    Rule(
        "empty keys before reasons",
        "^ValidationException.*empty string value",
        named("Key", "Item"),
        _emptied_in_a_transaction,
    ),
    _updating_rule("ways into documents", "path provided in the update", "SET gone.v = v"),
    _updating_rule("nesting of results", "Nesting Levels", "SET holder.v = deep"),
    _updating_rule("size of results", "Item size to update", "SET w = big"),
    _updating_rule(
        "types of results",
        "unsupported type|Type mismatch for Index Key",
        "SET l = holder",
    ),
    Rule(
        "no key is written",
        "part of the key",
        named("UpdateExpression", "AttributeUpdates", "Statement"),
        _key_written,
    ),
    Rule(
        "true conditions",
        "ConditionalCheckFailed",
        named("ConditionExpression", "Expected", "Statement"),
        _conditioned,
    ),
)

"""Rules for the elements of a batch or a transaction together, such as their number."""

from __future__ import annotations

from typing import Any, Final

from dynactor.model.limits import (
    BATCH_GET_KEYS,
    BATCH_WRITE_REQUESTS,
    ITEM_SIZE_BYTES,
    TRANSACTION_BYTES,
)
from tests.guards.member_rules import whole_base
from tests.guards.rules import Broken, Reason, Rule, given, named
from tests.guards.sites import Request, Site
from tests.guards.valid_requests import EMPTY_TABLE, KEY, TABLE, WHERE, base

_UPDATE: Final = f'UPDATE "{TABLE}" SET v = 1 {WHERE}'
_SELECT: Final = f'SELECT * FROM "{TABLE}" {WHERE}'


def _twice(site: Site, member: str) -> Broken:
    part = base(site)
    if member == "Keys":
        return {"": lambda: part | {"Keys": [KEY, KEY]}}
    if site.is_whole:
        return Reason.NO_LIST
    if member == "Statement":
        select, update = part | {member: _SELECT}, part | {member: _UPDATE}
        return given({"SELECT": (select, select), "UPDATE": (update, update)})
    return {"": lambda: (part, part)}


def _mixed(site: Site, member: str) -> Broken:
    if site.is_whole:
        return Reason.NO_LIST
    return {"": lambda: ({member: _SELECT}, {member: _UPDATE})}


def _item(number: int) -> dict[str, Any]:
    return {"pk": {"S": "a"}, "sk": {"S": f"{number}"}, "v": {"S": "x" * (ITEM_SIZE_BYTES - 1024)}}


def _too_large(site: Site, member: str) -> Broken:
    """More item bytes than a transaction may have."""
    part = base(site)
    count = TRANSACTION_BYTES // ITEM_SIZE_BYTES + 1
    if "TransactItems" in site.path:
        return {"": lambda: tuple(part | {member: _item(number)} for number in range(count))}
    if "TransactStatements" in site.path:
        insert = f"INSERT INTO \"{TABLE}\" VALUE {{'pk': ?, 'sk': ?, 'v': ?}}"
        return {
            "": lambda: tuple(
                {"Statement": insert, "Parameters": list(_item(number).values())}
                for number in range(count)
            )
        }
    return Reason.NO_TRANSACTION


def _too_many(site: Site, member: str) -> Broken:
    """More than the model's maximum of elements."""

    def made() -> Request:
        part = whole_base(site) or {}
        return part | {member: part[member] * (site.members[member].metadata["max"] + 1)}

    part = whole_base(site) or {}
    return {"": made} if member in part else Reason.NOT_BUILT


def _too_many_of_all(site: Site, member: str) -> Broken:
    """More than a batch's maximum, over two tables."""

    def keys(count: int) -> list[dict[str, Any]]:
        return [{"pk": {"S": "a"}, "sk": {"S": f"{number}"}} for number in range(count)]

    if site.operation == "BatchGetItem":
        half = BATCH_GET_KEYS // 2 + 1
        return {"": lambda: {member: {name: {"Keys": keys(half)} for name in (TABLE, EMPTY_TABLE)}}}
    half = BATCH_WRITE_REQUESTS // 2 + 1
    writes = [{"DeleteRequest": {"Key": key}} for key in keys(half)]
    return {"": lambda: {member: dict.fromkeys((TABLE, EMPTY_TABLE), writes)}}


BATCH_RULES: Final = (
    Rule(
        "items once",
        "contains duplicates|multiple operations on one item",
        named("Item", "Key", "Keys", "Statement"),
        _twice,
    ),
    Rule(
        "reads or writes",
        "Read and write requests together|both read and write|cannot contain both",
        named("Statement"),
        _mixed,
    ),
    Rule(
        "the size of transactions",
        "payload size cannot exceed",
        named("Item", "Parameters"),
        _too_large,
    ),
    Rule(
        "most elements",
        "less than or equal to",
        lambda _name, shape: shape.type_name == "list" and "max" in shape.metadata,
        _too_many,
    ),
    Rule("most items", "Too many items requested", named("RequestItems"), _too_many_of_all),
)

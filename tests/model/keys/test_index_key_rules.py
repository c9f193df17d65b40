"""Attributes that are index keys: the rules for writes, and the entries of an index."""

from __future__ import annotations

import base64

import pytest
from msgspec.structs import replace

from dynactor.model.definitions.index import IndexDefinition, Projection, global_entry
from dynactor.model.definitions.table import GlobalIndex, TableDefinition
from dynactor.model.errors import ValidationException
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.key_rules import (
    check_index_key_types,
    check_index_keys,
    check_updated_index_keys,
)
from dynactor.model.values.item import Item

S, N, B = (lambda text: {"S": text}), (lambda text: {"N": text}), (lambda raw: {"B": raw})
PAIR = IndexDefinition(
    1,
    "pair",
    KeySchema(
        (KeyAttribute("a", "S"), KeyAttribute("b", "S")),
        (KeyAttribute("c", "N"), KeyAttribute("d", "B")),
    ),
    Projection("ALL"),
)
ONE = IndexDefinition(
    2, "one", KeySchema((KeyAttribute("x", "S"),), (KeyAttribute("y", "S"),)), Projection("ALL")
)
LOCAL = IndexDefinition(
    3, "local", KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("y", "S"),)), Projection("ALL")
)
TABLE = TableDefinition(
    name="table",
    table_id=1,
    uuid="",
    created_epoch_seconds=0.0,
    attribute_definitions=(),
    key_schema=KeySchema((KeyAttribute("p", "S"),)),
    local_indexes=(LOCAL,),
    global_indexes=(GlobalIndex(PAIR), GlobalIndex(ONE)),
)
INVALID = "One or more parameter values were invalid: "
EMPTY = "One or more parameter values are not valid. A value specified for a secondary index key "
HASH_TOO_LONG = f"{INVALID}Size of hashkey has exceeded the maximum size limit of2048 bytes"
RANGE_TOO_LONG = (
    f"{INVALID}Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
)


def binary(size_bytes: int) -> Item:
    return B(base64.b64encode(bytes(size_bytes)).decode())


def refusal(item: Item) -> str:
    with pytest.raises(ValidationException) as caught:
        check_index_keys(TABLE, {"p": S("1"), **item})
    return caught.value.message


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (
            {"a": N("1")},
            f"{INVALID}Type mismatch for Index Key a Expected: S Actual: N IndexName: pair",
        ),
        (
            {"y": {"NULL": True}},
            f"{INVALID}Type mismatch for Index Key y Expected: S Actual: NULL IndexName: one",
        ),
        (
            {"x": S("")},
            (
                f"{EMPTY}is not supported. The AttributeValue for a key attribute cannot contain "
                "an empty string value. IndexName: one, IndexKey: x"
            ),
        ),
        (
            {"d": B("")},
            (
                f"{EMPTY}is not supported. The AttributeValue for a key attribute cannot contain "
                "an empty binary value. IndexName: pair, IndexKey: d"
            ),
        ),
        ({"x": S("x" * 2049)}, HASH_TOO_LONG),
        ({"y": S("x" * 1025)}, RANGE_TOO_LONG),
        (
            {"a": S("x" * 1025), "b": S("x" * 1024)},
            (
                "Aggregate size for HASH key attributes a, b of index pair has exceeded limit "
                "2048 bytes, with actual size 2049 bytes"
            ),
        ),
        (
            {"d": binary(1025)},
            (
                "Aggregate size for RANGE key attributes c, d of index pair has exceeded limit "
                "1024 bytes, with actual size 1025 bytes"
            ),
        ),
    ],
)
def test_a_put_is_refused(item: Item, message: str):
    assert refusal(item) == message


def test_values_of_exactly_the_maximum_size_are_accepted():
    full: Item = {
        "p": S("1"),
        "a": S("x" * 1024),
        "b": S("x" * 1024),
        "c": N("1"),
        "d": binary(1022),
        "x": S("x" * 2048),
        "y": S("x" * 1024),
    }
    check_index_keys(TABLE, full)
    assert global_entry(PAIR, TABLE.key_schema, full) == full
    assert global_entry(ONE, TABLE.key_schema, full) == full


@pytest.mark.parametrize(
    "changes", [{"a": S("x" * 1025)}, {"d": binary(1023)}, {"b": S("")}, {"c": S("1")}]
)
def test_an_index_leaves_out_items_that_break_its_key(changes: Item):
    item: Item = {
        "p": S("1"),
        "a": S("x" * 1024),
        "b": S("x" * 1024),
        "c": N("1"),
        "d": binary(1022),
    }
    assert global_entry(PAIR, TABLE.key_schema, {**item, **changes}) is None


@pytest.mark.parametrize(
    ("state", "checked"),
    [
        ({"status": "CREATING", "backfilling": False}, False),
        ({"status": "CREATING", "backfilling": True}, True),
        ({"status": "UPDATING", "backfilling": True}, True),
        ({"status": "UPDATING"}, True),
        ({"status": "DELETING"}, False),
    ],
)
def test_only_an_index_that_takes_entries_refuses_writes(state: dict, *, checked: bool):
    table = replace(
        TABLE, local_indexes=(), global_indexes=(replace(TABLE.global_indexes[1], **state),)
    )
    item = {"p": S("1"), "x": N("1")}
    if not checked:
        check_index_keys(table, item)
        check_index_key_types(table, {"x": "N"})
        return
    with pytest.raises(ValidationException):
        check_index_keys(table, item)
    with pytest.raises(ValidationException):
        check_index_key_types(table, {"x": "N"})


def test_an_update_of_another_attribute_than_the_violating_one_is_accepted():
    old: Item = {"p": S("1"), "x": N("1"), "a": S("x" * 2048), "b": S("x"), "z": S("1")}
    check_updated_index_keys(TABLE, old, frozenset({"z", "y"}))
    for written, part in (({"x"}, "unsupported type"), ({"b"}, "Aggregate size for HASH")):
        with pytest.raises(ValidationException, match=part):
            check_updated_index_keys(TABLE, old, frozenset(written))


def test_all_of_a_new_item_is_checked():
    # The table's partition key may be longer than an index's sort key.
    by_key = IndexDefinition(
        1,
        "by_key",
        KeySchema((KeyAttribute("x", "S"),), TABLE.key_schema.partition),
        PAIR.projection,
    )
    table = replace(TABLE, global_indexes=(GlobalIndex(by_key),))
    item = {"p": S("x" * 1025), "x": S("1")}
    check_updated_index_keys(table, item, frozenset({"x"}))
    with pytest.raises(ValidationException, match="1024"):
        check_updated_index_keys(table, item, None)

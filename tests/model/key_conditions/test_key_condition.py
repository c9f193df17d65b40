"""Key conditions on keys of several attributes, and on tables without a sort key."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.key_conditions.key_condition import (
    KeyCondition,
    SortCondition,
    bind_key_condition,
)
from dynactor.model.keys.key import KeyAttribute, KeySchema

V: dict[str, Any] = {"S": "v"}
W: dict[str, Any] = {"S": "w"}


def schema(partition: str, sort: str = "") -> KeySchema:
    return KeySchema(
        tuple(KeyAttribute(name, "S") for name in partition),
        tuple(KeyAttribute(name, "S") for name in sort),
    )


def on(text: str, key: KeySchema) -> KeyCondition:
    values = {name: dict(value) for name, value in ((":v", V), (":w", W)) if name in text}
    return bind_key_condition(text, Placeholders(None, values)).on(key)


# Two partition attributes and three sort attributes; outcomes seen on DynamoDB Local 3.3.
COMPOSITE = schema("ab", "cde")
HASH_RULE = "must have equality conditions specified in the query"
RANGE_RULE = f"{HASH_RULE} because a condition is present on key attribute"


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("a=:v and b=:w", ()),
        ("b=:w and a=:v and c>:v", (SortCondition("c", ">", (V,)),)),
        (
            "d between :v and :w and a=:v and c=:v and b=:w",
            (SortCondition("c", "=", (V,)), SortCondition("d", "BETWEEN", (V, W))),
        ),
        (
            "a=:v and b=:w and c=:v and d=:w and begins_with(e,:v)",
            (
                SortCondition("c", "=", (V,)),
                SortCondition("d", "=", (W,)),
                SortCondition("e", "begins_with", (V,)),
            ),
        ),
    ],
)
def test_equalities_with_one_range_at_the_end_are_sorted_in_the_order_of_the_key(
    text: str, sort: tuple[SortCondition, ...]
) -> None:
    assert on(text, COMPOSITE) == KeyCondition((V, W), sort)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=:v", f"HASH key attributes b {HASH_RULE}"),
        ("b=:v", f"HASH key attributes a {HASH_RULE}"),
        ("a=:v and b>:v", f"HASH key attributes b {HASH_RULE}"),
        ("a=:v and b=:v and d=:v", f"RANGE key attributes c {RANGE_RULE} d"),
        ("a=:v and b=:v and c>:v and d>:v", f"RANGE key attributes c {RANGE_RULE} d"),
        ("a=:v and b=:v and c>:v and d=:v", f"RANGE key attributes c {RANGE_RULE} d"),
        ("a=:v and b=:v and c=:v and e=:v", f"RANGE key attributes d {RANGE_RULE} e"),
        ("a=:v and b=:v and x=:v", "Query condition missed key schema element"),
        (
            "a=:v and b=:v and c=:v and d=:v and e=:v and x=:v",
            (
                "The number of query conditions (6) exceeds the number of key attributes defined "
                "in the schema (5)"
            ),
        ),
    ],
)
def test_conditions_that_skip_an_attribute_of_the_key_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        on(text, COMPOSITE)
    assert caught.value.message == message


def test_an_index_with_one_key_attribute_takes_one_condition() -> None:
    terms = bind_key_condition("p=:v and s=:v", Placeholders(None, {":v": dict(V)}))
    with pytest.raises(ValidationException, match=r"^Query key condition not supported$"):
        terms.on(schema("p"), is_of_index=True)
    three = bind_key_condition("p=:v and s=:v and t=:v", Placeholders(None, {":v": dict(V)}))
    with pytest.raises(ValidationException, match="exceeds the number of key attributes"):
        three.on(schema("p", "s"), is_of_index=True)


def test_a_table_without_sort_key_takes_one_condition() -> None:
    assert on("p=:v", schema("p")) == KeyCondition((V,))
    too_many = r"^The number of query conditions \(2\) exceeds the number .* schema \(1\)$"
    with pytest.raises(ValidationException, match=too_many):
        on("p=:v and s=:v", schema("p"))


@pytest.mark.parametrize("text", ["p=:v and s=:e", "p=:v and s>:e", "p=:v and begins_with(s,:e)"])
def test_an_empty_value_is_refused_in_any_condition(text: str) -> None:
    terms = bind_key_condition(text, Placeholders(None, {":v": dict(V), ":e": {"S": ""}}))
    with pytest.raises(ValidationException) as caught:
        terms.on(schema("p", "s"))
    assert caught.value.message == (
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: s"
    )

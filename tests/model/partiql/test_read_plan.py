"""Plans: the ranges of keys that a SELECT reads, and its filter."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.errors import ValidationException
from dynactor.model.key_conditions import key_range
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.partiql.read_plan import ReadPlan, key_of_one_item, read_plan
from dynactor.model.partiql.statement import SelectStatement
from tests.support.tables.bound_statement import bind

SCHEMA = KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("s", "N"),))


def select_of(rest: str, *parameters: dict[str, Any]) -> SelectStatement:
    statement = bind(f"SELECT * FROM abc {rest}", parameters)
    assert isinstance(statement, SelectStatement)
    return statement


def plan_of(rest: str, schema: KeySchema = SCHEMA) -> ReadPlan:
    return read_plan(select_of(rest), schema)


def found(plan: ReadPlan, schema: KeySchema, *items: dict[str, Any]) -> list[int]:
    """The numbers of the items that the plan reads, range by range."""
    return [
        number
        for one in plan.ranges
        for number, item in enumerate(items)
        if one.start <= keys.encode(schema, item) and keys.encode(schema, item) < (one.end or b"")
    ]


def item(p: str, s: int) -> dict[str, Any]:
    return {"p": {"S": p}, "s": {"N": str(s)}}


ITEMS = [item("a", 1), item("a", 2), item("a", 3), item("b", 2), item("c", 2)]


@pytest.mark.parametrize(
    ("where", "read", "filtered"),
    [
        ("p = 'a'", [0, 1, 2], False),
        ("p = 'a' AND s = 2", [1], False),
        ("s >= 2 AND (p = 'a' AND v = 1)", [1, 2], True),
        ("p = 'a' AND s > 1 AND s < 3", [1], False),
        ("p = 'a' AND 1 < s AND 3 > s", [1], False),
        ("p = 'a' AND s BETWEEN 1 AND 2 AND s >= 2", [1], False),
        ("p = 'a' AND s = 1 AND s = 2", [], False),
        ("p = 'a' AND s > 2 AND s < 2", [], False),
        ("p = 'a' AND s <> 2", [0, 1, 2], True),
        ("p = 'a' AND s IN [3, 1]", [0, 2], False),
        ("p IN ['c', 'a'] AND s = 2", [1, 4], False),
        ("p = 'c' OR p = 'b'", [3, 4], True),
        ("p = 'c' AND s = 1 OR p = 'b' AND v = 1", [3], True),
        ("p = 'a' AND (s = 3 OR s < 2)", [0, 2], True),
        ("p = 'a' AND s IN [1, v]", [0, 1, 2], True),
        ("p = 'a' AND (s < 3 OR s > 2 AND s < 1)", [0, 1], True),
        ("p IN ['a', 'b'] AND s IN [2, 3]", [1, 2, 3], False),
        ("p IN ['a', 'b'] AND p IN ['b', 'c']", [3], False),
        ("p = 'a' AND p = 'b'", [0, 1, 2], True),
        ("p IN ['a', 'b'] AND (p = 'b' OR p = 'c')", [3], True),
        ("p = 'b' AND p = p_too", [3], True),
    ],
)
def test_a_key_condition_is_read_as_ranges(where: str, read: list[int], *, filtered: bool) -> None:
    plan = plan_of(f"WHERE {where}")
    assert not plan.is_scan
    assert found(plan, SCHEMA, *ITEMS) == read
    assert (plan.filter is not None) is filtered


@pytest.mark.parametrize(
    "where",
    ["p > 'a'", "s = 1", "NOT p = 'a'", "p = 'a' OR s = 1", "p = q", "p IN ['a', q]", "p <> 'a'"],
)
def test_anything_else_is_a_scan(where: str) -> None:
    select = select_of(f"WHERE {where}")
    plan = read_plan(select, SCHEMA)
    assert plan.is_scan
    assert plan.filter == select.where


@pytest.mark.parametrize(
    ("rest", "reverse", "read"),
    [
        ("", False, [0, 1, 2, 3]),
        ("ORDER BY p", True, [0, 1, 2, 3]),
        ("ORDER BY p DESC", True, [3, 0, 1, 2]),
        ("ORDER BY p, s DESC", True, [0, 1, 2, 3]),
        ("ORDER BY p, s", False, [0, 1, 2, 3]),
        ("ORDER BY p DESC, s DESC", True, [3, 0, 1, 2]),
        ("ORDER BY s ASC, p DESC", False, [3, 0, 1, 2]),
    ],
)
def test_descending_order_reverses_the_ranges_and_their_order(
    rest: str, read: list[int], *, reverse: bool
) -> None:
    plan = plan_of(f"WHERE p IN ['b', 'a'] {rest}")
    assert plan.reverse is reverse
    assert found(plan, SCHEMA, *ITEMS[:4]) == read


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("p = 'a' AND s = 1", True),
        ("s = 1 AND 'a' = p", True),
        ("p = 'a'", False),
        ("p = 'a' AND s = 1 AND v = 1", False),
        ("p = 'a' AND s = 1 AND s = 1", True),
        ("p = 'a' AND s = 1 AND s = 2", False),
        ("p = 'a' AND s >= 1", False),
    ],
)
def test_a_statement_for_one_item_needs_its_whole_key(where: str, *, expected: bool) -> None:
    key = key_of_one_item(select_of(f"WHERE {where}"), SCHEMA)
    assert (key is not None) is expected


@pytest.mark.parametrize("where", ["p = 1", "p IN ['a', 1]", "p = 'a' AND s = 'x'", "p = ''"])
def test_a_key_condition_of_another_type_or_with_an_empty_value_is_refused(where: str) -> None:
    with pytest.raises(ValidationException):
        plan_of(f"WHERE {where}")


texts = st.sampled_from("ab")
comparisons = st.one_of(
    st.tuples(st.sampled_from("pq"), st.sampled_from(("=", "=", "<>", "<")), texts).map(
        "{0[0]} {0[1]} '{0[2]}'".format
    ),
    st.tuples(
        st.sampled_from(("s", "s", "v")),
        st.sampled_from(("=", "<>", "<", "<=", ">", ">=")),
        st.integers(0, 3),
    ).map("{0[0]} {0[1]} {0[2]}".format),
    st.tuples(st.sampled_from("sv"), st.integers(0, 3), st.integers(0, 2)).map(
        lambda three: f"{three[0]} BETWEEN {three[1]} AND {three[1] + three[2]}"
    ),
    st.sampled_from(["p IN ['a', 'b']", "q IN ['b', 'c']", "s IN [0, 2]", "begins_with(q, 'a')"]),
)
wheres = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda found: f"({' AND '.join(found)})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda found: f"({' OR '.join(found)})"),
        inner.map("NOT ({})".format),
    ),
    max_leaves=6,
)
EVERYTHING = [
    {"p": {"S": p}, "q": {"S": q}, "s": {"N": str(s)}, "t": {"S": "k"}, "v": {"N": str(v)}}
    for p in "ab"
    for q in "abc"
    for s in range(4)
    for v in range(3)
]


@given(wheres)
def test_a_plan_finds_the_items_that_meet_the_condition(where: str) -> None:
    select = select_of(f"WHERE {where}")
    plan = None
    with suppress(ValidationException):
        plan = read_plan(select, SCHEMA)
    if plan is None:
        # Only IN and OR split a SELECT into several reads, which may overlap.
        assert " IN " in where or " OR " in where
        return
    assert select.where is not None
    for one in EVERYTHING:
        position = keys.encode(SCHEMA, one)
        ranges = [key_range.contains(wanted, position) for wanted in plan.ranges]
        passes = plan.filter is None or plan.filter.evaluate(one)
        assert sum(ranges) <= 1
        assert (any(ranges) and passes) == select.where.evaluate(one), where

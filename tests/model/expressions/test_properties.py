"""Random conditions and updates against naive models, without a server; random texts."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynactor.model.errors import ValidationException
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.parser import condition_tree
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.projection import Projector, parse_projection
from dynactor.model.expressions.update import BoundUpdate, parse_update
from dynactor.model.values import item as items
from tests.properties import condition_model, update_model
from tests.properties.strategies import Item, Value
from tests.properties.strategies import items as some_items
from tests.properties.test_conditions import conditions
from tests.properties.test_updates import updates


def canonical(item: Item) -> Item:
    """The form of a stored item: sets are sorted."""
    item = deepcopy(item)
    items.check(item)
    return item


def as_in_a_message(bound: Any) -> Any:
    """A condition or an update after being sent to an actor in another process."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(bound), type=type(bound))


@settings(max_examples=500, deadline=None)
@given(item=some_items, condition=conditions)
def test_conditions_have_the_results_of_a_naive_model(
    item: Item, condition: condition_model.Condition
) -> None:
    values: dict[str, Value] = {}
    text = condition_model.render(condition, values)
    placeholders = Placeholders(None, deepcopy(values) or None)
    bound = parse_condition(text, placeholders, kind="FilterExpression")
    placeholders.check_all_used()
    expected = condition_model.holds(condition, item)
    assert bound.evaluate(canonical(item)) is expected
    assert as_in_a_message(bound) == bound
    assert as_in_a_message(bound).evaluate(canonical(item)) is expected


@settings(max_examples=500, deadline=None)
@given(item=some_items, actions=updates())
def test_updates_have_the_effects_of_a_naive_model(
    item: Item, actions: list[update_model.Action]
) -> None:
    rendered = update_model.render(actions)
    placeholders = Placeholders(None, deepcopy(rendered.values) or None)
    bound = parse_update(rendered.text, placeholders)
    placeholders.check_all_used()
    old = canonical(item)
    try:
        expected = update_model.apply(item, actions)
    except update_model.Refused:
        with pytest.raises(ValidationException):
            bound.apply(old, {})
    else:
        assert bound.apply(old, {}).item == canonical(expected)
        assert as_in_a_message(bound).apply(old, {}).item == canonical(expected)
    assert old == canonical(item), "the old item was changed"


WORDS = (
    "a", "b", "m.x", "l[0]", "#n", ":v", ":s", "(", ")", "(", ")", ",", "=", "<", "<>", ">=",
    "+", "-", ".", "[", "]", "0", "7", "name", "é", "$", "AND", "OR", "NOT", "BETWEEN", "IN",
    "SET", "REMOVE", "ADD", "DELETE", "size(", "attribute_exists(", "contains(",
    "begins_with(", "if_not_exists(", "list_append(",
)  # fmt: skip


@settings(max_examples=1000, deadline=None)
@given(words=st.lists(st.sampled_from(WORDS), max_size=14), glue=st.sampled_from(["", " ", "\n"]))
def test_any_text_is_an_expression_or_a_validation_error(words: list[str], glue: str) -> None:
    text = glue.join(words)
    item = {"a": {"N": "1"}, "l": {"L": []}, "m": {"M": {}}}

    def placeholders() -> Placeholders:
        return Placeholders({"#n": "n"}, {":v": {"N": "1"}, ":s": {"SS": ["x"]}})

    for run in (
        lambda: parse_condition(text, placeholders(), kind="FilterExpression").evaluate(item),
        lambda: parse_update("SET a = " + text, placeholders()).apply(item, {}),
        lambda: parse_update(text, placeholders()).apply(None, {}),
        lambda: parse_projection(text, placeholders()).project(item),
    ):
        with suppress(ValidationException):
            run()
    assert item == {"a": {"N": "1"}, "l": {"L": []}, "m": {"M": {}}}


@pytest.mark.parametrize(
    ("bound", "type_"),
    [
        (
            parse_condition(
                "NOT (a = b OR size(m.x[0]) < size(c)) AND contains(d, e) AND f IN (g, h)"
                " AND attribute_type(i.j, :t) AND k BETWEEN l AND m AND attribute_not_exists(n)"
                " AND begins_with(o, p) AND attribute_exists(q) AND r <> s AND t >= u",
                Placeholders(None, {":t": {"S": "NULL"}}),
                kind="ConditionExpression",
            ),
            Condition,
        ),
        (
            parse_update(
                "SET a = if_not_exists(b.c, d) + e, f = list_append(g, h), i[0] = j - k, q = :v"
                " REMOVE l[1].m ADD n :v DELETE o :s",
                Placeholders(None, {":v": {"N": "1"}, ":s": {"BS": ["AA=="]}}),
            ),
            BoundUpdate,
        ),
        (parse_projection("a, b.c[1], b.c[0]", Placeholders(None, None)), Projector),
    ],
)
@pytest.mark.parametrize("codec", [msgspec.msgpack, msgspec.json])
def test_every_kind_of_syntax_node_round_trips_through_a_message(
    bound: Any, type_: type, codec: Any
) -> None:
    assert codec.decode(codec.encode(bound), type=type_) == bound


def test_a_text_is_parsed_once() -> None:
    text = "this_text = :is_nowhere_else"
    before = condition_tree.cache_info()
    for value in "1", "2":
        bound = parse_condition(
            text, Placeholders(None, {":is_nowhere_else": {"N": value}}), kind="FilterExpression"
        )
        assert bound.evaluate({"this_text": {"N": value}})
    after = condition_tree.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 1)

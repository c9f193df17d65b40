"""Random conditions hold for the same items as in a naive model."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import condition_model
from tests.properties.condition_model import Condition
from tests.properties.strategies import (
    Item,
    Value,
    binary_values,
    items,
    number_values,
    scalars,
    strings,
    values,
)
from tests.properties.update_model import Path
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import unique_name

PATHS: tuple[Path, ...] = (
    ("a",), ("b",), ("n",), ("m",), ("m", "x"), ("m", "y"), ("l",), ("l", 0), ("l", 1), ("ss",),
    ("ns",), ("absent",), ("m", "x", 0),
)  # fmt: skip
TYPE_NAMES = ("S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL")
ORDERED = st.one_of(strings, number_values, binary_values)

paths = st.sampled_from(PATHS)


def made(
    operator: str,
    path: Path = (),
    values: tuple[Value, ...] = (),
    parts: tuple[Condition, ...] = (),
) -> Condition:
    """Make a condition, because ``st.builds(Condition)`` would also generate omitted fields."""
    return Condition(operator, path, values, parts)


simple_conditions = st.one_of(
    st.builds(made, st.sampled_from(("=", "<>")), paths, st.tuples(values)),
    st.builds(made, st.sampled_from(("<", "<=", ">", ">=")), paths, st.tuples(ORDERED)),
    st.builds(
        made,
        st.just("BETWEEN"),
        paths,
        # Bounds in the wrong order are an error instead of a condition.
        st.sampled_from(
            (
                ({"N": "-1"}, {"N": "2"}),
                ({"N": "1"}, {"N": "1"}),
                ({"S": "a"}, {"S": "b"}),
                ({"S": "B"}, {"S": "~"}),
                ({"B": "AA=="}, {"B": "YWI="}),
            )
        ),
    ),
    st.builds(made, st.just("IN"), paths, st.lists(values, min_size=1, max_size=4).map(tuple)),
    st.builds(made, st.sampled_from(("attribute_exists", "attribute_not_exists")), paths),
    st.builds(
        made,
        st.just("attribute_type"),
        paths,
        st.tuples(st.sampled_from(TYPE_NAMES).map(lambda name: {"S": name})),
    ),
    st.builds(made, st.just("begins_with"), paths, st.tuples(st.one_of(strings, binary_values))),
    st.builds(made, st.just("contains"), paths, st.tuples(scalars)),
    st.builds(
        made,
        st.just("size"),
        paths,
        st.tuples(st.integers(0, 4).map(lambda size: {"N": str(size)})),
    ),
)
conditions = st.recursive(
    simple_conditions,
    lambda inner: st.one_of(
        st.builds(
            made,
            st.sampled_from(("AND", "OR")),
            parts=st.lists(inner, min_size=2, max_size=3).map(tuple),
        ),
        st.builds(made, st.just("NOT"), parts=st.tuples(inner)),
    ),
    max_leaves=4,
)


@settings(max_examples=250, deadline=None)
@given(
    held=st.lists(items, min_size=1, max_size=8),
    asked=st.lists(conditions, min_size=1, max_size=4),
)
def test_a_filter_keeps_the_items_that_a_naive_model_keeps(
    wire: WireClient, composite: str, held: list[Item], asked: list[Condition]
) -> None:
    pk = unique_name("pk")
    puts = [
        {"PutRequest": {"Item": item | {"pk": {"S": pk}, "sk": {"S": str(number)}}}}
        for number, item in enumerate(held)
    ]
    wire("BatchWriteItem", {"RequestItems": {composite: puts}})
    for condition in asked:
        placeholders = {":pk": {"S": pk}}
        text = condition_model.render(condition, placeholders)
        answer = wire(
            "Query",
            {
                "TableName": composite,
                "ConsistentRead": True,
                "KeyConditionExpression": "pk = :pk",
                "FilterExpression": text,
                "ProjectionExpression": "sk",
                "ExpressionAttributeValues": placeholders,
            },
        )
        expected = [
            str(number)
            for number, item in enumerate(held)
            if condition_model.holds(condition, item)
        ]
        assert [found["sk"]["S"] for found in answer["Items"]] == expected, text
        assert answer["ScannedCount"] == len(held)


@settings(max_examples=100, deadline=None)
@given(item=items, condition=conditions)
def test_a_conditional_write_succeeds_exactly_if_a_naive_model_agrees(
    wire: WireClient, simple: str, item: Item, condition: Condition
) -> None:
    key: Item = {"pk": {"S": unique_name("pk")}}
    wire("PutItem", {"TableName": simple, "Item": key | item})
    placeholders: dict[str, dict[str, str]] = {}
    text = condition_model.render(condition, placeholders)
    request = {"TableName": simple, "Key": key, "ConditionExpression": text}
    if placeholders:
        request["ExpressionAttributeValues"] = placeholders
    answer = wire.send("DeleteItem", request)
    left = wire("GetItem", {"TableName": simple, "Key": key, "ConsistentRead": True})
    if condition_model.holds(condition, item):
        assert answer.status == 200, answer.body
        assert "Item" not in left
    else:
        assert answer.status == 400
        assert answer.json["__type"].endswith("#ConditionalCheckFailedException")
        assert "Item" in left

"""Random updates of random items have the same effect as in a naive model."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties import update_model
from tests.properties.strategies import (
    Item,
    Value,
    comparable,
    items,
    lists,
    number_sets,
    number_values,
    string_sets,
    values,
)
from tests.properties.update_model import Action, Operand, Path
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import unique_name

# No path is a prefix of another, and an update uses each path once.
PLACES: tuple[Path, ...] = (
    ("a",),
    ("b",),
    ("n",),
    ("m", "x"),
    ("m", "y"),
    ("m", "z", 0),
    ("l", 0),
    ("l", 1),
    ("l", 2),
    ("l", 5),
    ("l", 7),
    ("ss",),
    ("ns",),
)
KEYWORDS: dict[Path, tuple[str, ...]] = {
    ("n",): ("SET", "REMOVE", "ADD"),
    ("ss",): ("SET", "REMOVE", "ADD", "DELETE"),
    ("ns",): ("SET", "REMOVE", "ADD", "DELETE"),
}
READ: tuple[Path, ...] = (*PLACES, ("m",), ("l",))


def operand(kind: str, path: Path = (), value: Value | None = None) -> Operand:
    """Make an operand, because ``st.builds(Operand)`` would also generate omitted fields."""
    return Operand(kind, path, value)


operands = st.one_of(
    st.builds(operand, st.just("value"), st.just(()), values),
    st.builds(operand, st.just("path"), st.sampled_from(READ)),
    st.builds(operand, st.sampled_from(("plus", "minus")), st.sampled_from(READ), number_values),
    st.builds(operand, st.just("if_not_exists"), st.sampled_from(READ), values),
    st.builds(operand, st.just("list_append"), st.sampled_from(READ), lists),
)


@st.composite
def updates(draw: st.DrawFn) -> list[Action]:
    """An update of one to four paths."""
    actions = []
    for path in draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=4, unique=True)):
        keyword = draw(st.sampled_from(KEYWORDS.get(path, ("SET", "SET", "REMOVE"))))
        operand_drawn = None
        if keyword == "SET":
            operand_drawn = draw(operands)
        elif keyword != "REMOVE":
            content = {"n": number_values, "ss": string_sets, "ns": number_sets}[str(path[0])]
            operand_drawn = Operand("value", value=draw(content))
        actions.append(Action(keyword, path, operand_drawn))
    # An expression has each clause once, so its actions are grouped.
    return sorted(actions, key=lambda action: action.keyword)


@settings(max_examples=300, deadline=None)
@given(item=items, rounds=st.lists(updates(), min_size=1, max_size=3))
def test_updates_change_an_item_as_a_naive_model_does(
    wire: WireClient, simple: str, item: Item, rounds: list[list[Action]]
) -> None:
    key: Item = {"pk": {"S": unique_name("pk")}}
    wire("PutItem", {"TableName": simple, "Item": key | item})
    for actions in rounds:
        text, placeholders = update_model.render(actions)
        request = {
            "TableName": simple,
            "Key": key,
            "UpdateExpression": text,
            "ReturnValues": "ALL_NEW",
        }
        if placeholders:
            request["ExpressionAttributeValues"] = placeholders
        try:
            expected = update_model.apply(item, actions)
        except update_model.Refused:
            assert wire.refused("UpdateItem", request).type == "ValidationException"
            expected = item
        else:
            answer = wire("UpdateItem", request)
            assert comparable(answer["Attributes"]) == comparable(key | expected)
        item = expected
        stored = wire("GetItem", {"TableName": simple, "Key": key, "ConsistentRead": True})
        assert comparable(stored["Item"]) == comparable(key | item)

"""The returned values of an update, and the parts of an item that it keeps."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update import UpdateResult, parse_update
from dynactor.model.values.item import Item

KEY: Item = {"p": {"S": "k"}}
ITEM: Item = {
    **KEY,
    "n": {"N": "1"},
    "l": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}]},
    "m": {"M": {"x": {"N": "1"}, "y": {"M": {"z": {"S": "deep"}}}}},
    "ss": {"SS": ["a"]},
}


def apply(text: str, old: Item | None, **values: Any) -> UpdateResult:
    placeholders = Placeholders(None, {f":{name}": value for name, value in values.items()} or None)
    return parse_update(text, placeholders).apply(old, KEY)


@pytest.mark.parametrize(
    "text",
    ["REMOVE a", "REMOVE a.b", "REMOVE a[0], b.c.d", "DELETE a :ss", "DELETE a.b :ss REMOVE c.d"],
)
def test_removing_from_a_missing_item_creates_nothing_whatever_the_path(text: str) -> None:
    values = {"ss": {"SS": ["x"]}} if ":ss" in text else {}
    assert apply(text, None, **values) == UpdateResult(None, {}, {})


def test_a_removal_with_a_set_needs_a_valid_path_even_on_a_missing_item() -> None:
    with pytest.raises(ValidationException) as caught:
        apply("REMOVE a.b SET c = :v", None, v={"N": "1"})
    assert caught.value.message == (
        "The document path provided in the update expression is invalid for update"
    )


def test_an_update_of_a_missing_item_creates_the_item_with_its_key() -> None:
    result = apply("SET a = :v", None, v={"N": "1"})
    assert result == UpdateResult({**KEY, "a": {"N": "1"}}, {}, {"a": {"N": "1"}})


@pytest.mark.parametrize(
    ("text", "updated_old", "updated_new"),
    [
        ("SET n = n + :v", {"n": {"N": "1"}}, {"n": {"N": "2"}}),
        ("SET q = :v", {}, {"q": {"N": "1"}}),
        ("REMOVE n", {"n": {"N": "1"}}, {}),
        ("REMOVE q", {}, {}),
        ("SET m.x = :w", {"m": {"M": {"x": {"N": "1"}}}}, {"m": {"M": {"x": {"N": "5"}}}}),
        (
            "SET m.x = :w, m.y.z = :v, n = :w",
            {"m": {"M": {"x": {"N": "1"}, "y": {"M": {"z": {"S": "deep"}}}}}, "n": {"N": "1"}},
            {"m": {"M": {"x": {"N": "5"}, "y": {"M": {"z": {"N": "1"}}}}}, "n": {"N": "5"}},
        ),
        ("SET l[1] = :w", {"l": {"L": [{"N": "1"}]}}, {"l": {"L": [{"N": "5"}]}}),
        # The appended element is not at the position in the path.
        ("SET l[7] = :w", {}, {}),
        ("SET l[3] = :w", {}, {"l": {"L": [{"N": "5"}]}}),
        (
            "SET l[2] = :w, l[0] = :v",
            {"l": {"L": [{"N": "0"}, {"N": "2"}]}},
            {"l": {"L": [{"N": "1"}, {"N": "5"}]}},
        ),
        # The element that moved up replaces the removed one.
        ("REMOVE l[1]", {"l": {"L": [{"N": "1"}]}}, {"l": {"L": [{"N": "2"}]}}),
        ("REMOVE l[2]", {"l": {"L": [{"N": "2"}]}}, {}),
        ("DELETE ss :ss", {"ss": {"SS": ["a"]}}, {}),
        ("ADD ss :tt", {"ss": {"SS": ["a"]}}, {"ss": {"SS": ["a", "b"]}}),
    ],
)
def test_updated_old_and_new_show_the_values_at_the_paths(
    text: str, updated_old: Item, updated_new: Item
) -> None:
    values = {"v": {"N": "1"}, "w": {"N": "5"}, "ss": {"SS": ["a"]}, "tt": {"SS": ["b"]}}
    used = {name: deepcopy(value) for name, value in values.items() if f":{name}" in text}
    result = apply(text, ITEM, **used)
    assert (result.updated_old, result.updated_new) == (updated_old, updated_new)


def test_the_old_item_and_its_values_are_never_changed() -> None:
    before = deepcopy(ITEM)
    result = apply(
        "SET m.y.z = :v, l[0] = :v, l[9] = :v ADD ss :ss, m.x :v REMOVE n, l[1]",
        ITEM,
        v={"N": "5"},
        ss={"SS": ["b"]},
    )
    assert before == ITEM
    assert result.item == {
        **KEY,
        "l": {"L": [{"N": "5"}, {"N": "2"}, {"N": "5"}]},
        "m": {"M": {"x": {"N": "6"}, "y": {"M": {"z": {"N": "5"}}}}},
        "ss": {"SS": ["a", "b"]},
    }


def test_unchanged_parts_are_shared_with_the_old_item() -> None:
    result = apply("SET m.x = :v", ITEM, v={"N": "5"})
    assert result.item is not None
    assert result.item["l"] is ITEM["l"]
    assert result.item["m"]["M"]["y"] is ITEM["m"]["M"]["y"]


def test_attributes_are_the_top_level_names_that_are_written() -> None:
    update = parse_update(
        "SET a.b = c, #d[1] = e REMOVE f ADD g :v",
        Placeholders({"#d": "dee"}, {":v": {"N": "1"}}),
    )
    assert update.attributes == {"a", "dee", "f", "g"}


def test_arithmetic_is_exact() -> None:
    sums = {
        ("0.1", "0.2"): "0.3",
        ("1E-130", "1E-130"): "0." + "0" * 129 + "2",
        ("12345678901234567890123456789012345678", "1"): "12345678901234567890123456789012345679",
        ("5", "-5"): "0",
    }
    for (left, right), total in sums.items():
        result = apply("SET a = :l + :r", None, l={"N": left}, r={"N": right})
        assert result.item == {**KEY, "a": {"N": total}}


@pytest.mark.parametrize(
    ("left", "right"), [("1e50", "1"), ("9e125", "9e125"), ("1", "1e-130"), ("1e-130", "1e125")]
)
def test_a_sum_of_more_than_38_digits_or_out_of_range_is_refused(left: str, right: str) -> None:
    with pytest.raises(ValidationException):
        apply("SET a = :l + :r", None, l={"N": left}, r={"N": right})
    item = apply("SET a = :l", None, l={"N": left}).item
    with pytest.raises(ValidationException):
        apply("ADD a :r", item, r={"N": right})

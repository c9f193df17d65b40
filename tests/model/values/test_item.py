"""Items: their size, their limits, their bytes."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynactor.model.errors import ValidationException
from dynactor.model.values import item as items
from tests.model.values.test_attribute_value import values

LIMIT = 400 * 1024

whole_items = st.dictionaries(st.text(min_size=1), values, max_size=5)


@pytest.mark.parametrize(
    ("item", "size_bytes"),
    [
        ({}, 0),
        ({"a": {"S": "b"}}, 2),
        ({"é": {"S": "é"}}, 4),
        ({"pk": {"S": "key"}, "n": {"N": "-1.50"}, "l": {"L": []}}, 5 + (1 + 4) + (1 + 3)),
        ({"name": {"NULL": True}, "flag": {"BOOL": False}}, 5 + 5),
    ],
)
def test_the_size_of_an_item_is_that_of_its_names_and_values(item, size_bytes):
    item = copy.deepcopy(item)

    assert items.check(item) == size_bytes
    assert items.size_bytes(item) == size_bytes


@given(whole_items)
@settings(max_examples=50)
def test_the_size_is_the_same_when_checked_and_afterwards(item):
    assert items.check(item) == items.size_bytes(item)


@given(whole_items)
@settings(max_examples=50)
def test_an_item_round_trips_through_its_bytes(item):
    items.check(item)

    assert items.decode(items.encode(item)) == item


@given(whole_items)
@settings(max_examples=50)
def test_the_size_of_an_item_is_at_most_that_of_its_json(item):
    """Therefore the length of a request bounds the size of its items."""
    assert items.check(item) <= len(items.encode(item))


def test_an_item_has_at_most_400_kb():
    items.check_size(LIMIT)
    with pytest.raises(ValidationException, match="Item size has exceeded the max"):
        items.check_size(LIMIT + 1)
    with pytest.raises(ValidationException, match="Item size to update has exceeded"):
        items.check_size(LIMIT + 1, items.TOO_LARGE_AFTER_UPDATE)


@pytest.mark.parametrize("letter", ["a", "é", "😀"])
def test_a_name_has_at_most_65535_bytes(letter):
    width = len(letter.encode())
    longest = "a" * (65_535 % width) + letter * (65_535 // width)

    assert items.check({longest: {"S": ""}}) == 65_535
    with pytest.raises(ValidationException, match="Attribute name is too large"):
        items.check({longest + "a": {"S": ""}})


@pytest.mark.parametrize(
    "item",
    [
        {"": {"S": "a"}},
        {"a": {"M": {"": {"S": "a"}}}},
        {"a": {"L": [{"M": {"b": {"M": {"": {"S": "a"}}}}}]}},
    ],
)
def test_an_empty_name_is_refused(item):
    with pytest.raises(ValidationException, match=r"^Empty attribute name$"):
        items.check(item)


@given(whole_items, st.lists(st.text(min_size=1), max_size=3, unique=True), st.data())
def test_some_attributes_are_decoded_as_all_are(item, others, data):
    items.check(item)
    present = data.draw(st.lists(st.sampled_from(sorted(item)), unique=True)) if item else []
    names = list(dict.fromkeys(present + others))

    part = items.part_decoder(names)(items.encode(item))

    assert {name: part.get(name) for name in names} == {name: item.get(name) for name in names}


@pytest.mark.parametrize("name", ['"', "\\", "\n", "a b", "é", "1"])
def test_an_attribute_of_any_name_is_decoded(name):
    item = {name: {"S": "x"}, "other": {"N": "1"}}

    assert items.part_decoder([name])(items.encode(item))[name] == {"S": "x"}

"""The fast path for keys: the same position as the slow path, or None."""

from __future__ import annotations

import copy
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynactor.model.errors import DynamoDBError
from dynactor.model.keys import key as keys
from dynactor.model.keys.fast_key import encode_parts, encode_position
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.key_rules import check_item_key, check_key
from dynactor.model.values import item as items
from tests.model.keys.test_key import binaries, strings
from tests.model.values.test_number import numbers

types = st.sampled_from("SNB")


@st.composite
def schemas(draw: st.DrawFn) -> KeySchema:
    sort = draw(st.booleans())
    return KeySchema(
        (KeyAttribute("pk", draw(types)),), (KeyAttribute("sk", draw(types)),) if sort else ()
    )


usual_values = st.one_of(
    strings.map(lambda text: {"S": text}),
    numbers().map(lambda text: {"N": text}),
    binaries.map(lambda raw: {"B": b64encode(raw).decode()}),
)
ODD_CONTENTS = [
    "",
    "1e3",
    "-0",
    "007",
    "1.0",
    "+1",
    " 1",
    "1\n",
    "9" * 39,
    "YQ==",
    "YR==",
    "Y",
    "Y Q=",
    "é",
    "YQ==\n",
    "x" * 1024,
    "x" * 1025,
    "x" * 2048,
    "x" * 2049,
    "é" * 1024,
    "é" * 1025,
    7,
    None,
    True,
    [],
    {},
]
odd_values = st.one_of(
    st.tuples(
        st.sampled_from(["S", "N", "B", "SS", "BOOL", "M", "X"]), st.sampled_from(ODD_CONTENTS)
    ).map(lambda pair: {pair[0]: pair[1]}),
    st.just({}),
    st.just({"S": "a", "N": "1"}),
    st.just({"S": "a", "N": None}),
    st.just({"S": "a", "X": 1}),
    st.sampled_from([None, "a", ["S", "a"]]),
)
values = usual_values | odd_values
names = st.sampled_from(["pk", "sk", "other"])


def slowly(schema: KeySchema, key: dict[str, Any]) -> bytes | None:
    """The position by separate checks and encoding; None for a refused key."""
    key = copy.deepcopy(key)
    try:
        items.check(key)
        check_key(schema, key)
    except DynamoDBError:
        return None
    return keys.encode(schema, key)


@given(schemas(), st.dictionaries(names, values, max_size=3))
@example(KeySchema((KeyAttribute("pk", "S"),)), {"pk": {"S": "a\x00b"}})
@example(KeySchema((KeyAttribute("pk", "B"),)), {"pk": {"B": "AAE="}})
@example(KeySchema((KeyAttribute("pk", "N"),)), {"pk": {"N": "-12.5"}})
def test_a_position_equals_that_of_the_slow_path(schema, key):
    before = copy.deepcopy(key)
    found = encode_position(schema)(key)
    assert key == before
    if found is not None:
        assert found == slowly(schema, key)


@pytest.mark.parametrize("content", ODD_CONTENTS)
@pytest.mark.parametrize("kind", ["S", "N", "B"])
def test_an_unusual_value_gives_the_result_of_the_slow_path_or_none(kind, content):
    of_partition = KeySchema((KeyAttribute("pk", kind),))
    of_sort = KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", kind),))
    keys_of = {
        of_partition: {"pk": {kind: content}},
        of_sort: {"pk": {"S": "a"}, "sk": {kind: content}},
    }
    for schema, key in keys_of.items():
        before = copy.deepcopy(key)
        found = encode_position(schema)(key)
        assert key == before
        if found is not None:
            assert found == slowly(schema, key)


@given(schemas(), st.data())
def test_the_fast_path_decides_every_canonical_key_of_the_table(schema, data):
    of_type = {
        "S": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200),
        "N": st.integers(-(10**30), 10**30).map(str),
        "B": st.binary(min_size=1, max_size=200).map(lambda raw: b64encode(raw).decode()),
    }
    key = {
        attribute.name: {attribute.type: data.draw(of_type[attribute.type])}
        for attribute in schema.attributes
    }
    assert encode_position(schema)(key) == slowly(schema, key) is not None


@given(schemas(), st.dictionaries(names, values, max_size=3))
def test_the_parts_of_an_item_equal_those_of_its_checked_key(schema, item):
    before = copy.deepcopy(item)
    found = encode_parts(schema)(item)
    assert item == before
    if found is not None:
        key = {attribute.name: item[attribute.name] for attribute in schema.attributes}
        items.check(key)
        check_item_key(schema, key)
        assert found == (keys.encode_partition(schema, key), keys.encode_sort(schema, key))
        assert b"".join(found) == encode_position(schema)(key)


@pytest.mark.parametrize(("size", "is_usual"), [(1024, True), (1025, False)])
def test_the_fast_path_leaves_an_item_with_a_too_long_sort_key_to_the_slow_path(
    size: int, is_usual: bool
):
    schema = KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "S"),))
    parts = encode_parts(schema)({"pk": {"S": "a"}, "sk": {"S": "x" * size}, "more": {"S": "y"}})
    assert (parts is not None) == is_usual


@pytest.mark.parametrize(("size", "is_usual"), [(2048, True), (2049, False)])
def test_the_fast_path_leaves_a_partition_key_of_more_than_2048_bytes_to_the_slow_path(
    size: int, is_usual: bool
):
    position = encode_position(KeySchema((KeyAttribute("pk", "S"),)))({"pk": {"S": "x" * size}})
    assert (position is not None) == is_usual


@pytest.mark.parametrize(("size", "is_usual"), [(1024, True), (1025, False)])
def test_the_fast_path_leaves_a_sort_key_of_more_than_1024_bytes_to_the_slow_path(
    size: int, is_usual: bool
):
    schema = KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "S"),))
    position = encode_position(schema)({"pk": {"S": "a"}, "sk": {"S": "x" * size}})
    assert (position is not None) == is_usual

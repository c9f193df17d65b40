"""Decoding keys: the encoded values come back, and the ends of parts are found."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.keys.key_decoding import key_values, partition_end, partition_values
from dynactor.model.values import number
from tests.model.values.test_number import numbers

VALUES = {
    "S": st.text(min_size=1).map(lambda text: {"S": text}),
    "N": numbers().map(lambda text: {"N": text}),
    "B": st.binary(min_size=1).map(lambda raw: {"B": b64encode(raw).decode()}),
}


@st.composite
def keyed(draw: st.DrawFn) -> tuple[KeySchema, dict[str, dict[str, str]]]:
    """A possible schema of an index, and a key."""
    types = draw(st.lists(st.sampled_from("SNB"), min_size=1, max_size=8))
    parts = min(draw(st.integers(1, 4)), len(types))
    attributes = tuple(KeyAttribute(f"a{at}", kind) for at, kind in enumerate(types))
    schema = KeySchema(attributes[:parts], attributes[parts:][:4])
    return schema, {attribute.name: draw(VALUES[attribute.type]) for attribute in schema.attributes}


@given(keyed(), st.binary())
def test_a_key_is_decoded_from_a_position_with_any_suffix(given_key, behind):
    schema, key = given_key
    position = keys.encode(schema, key) + behind

    partition = len(keys.encode_partition(schema, key))
    assert partition_end(schema, position) == partition
    assert key_values(schema, position) == key
    assert partition_values(schema, position) == {
        attribute.name: key[attribute.name] for attribute in schema.partition
    }


@given(numbers())
def test_a_number_round_trips_through_its_bytes(text):
    assert number.decode(number.encode(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("0", "1", "-1", "10", "100", "0.1", "-0.01", "123.456", "-123.4"),
        *("9" * 38, "-" + "9" * 38, number.canonical("1e-130"), number.canonical("-1e-130")),
        *(number.canonical("9.9e125"), number.canonical("-9.9e125")),
    ],
)
def test_numbers_at_the_ends_of_the_range_round_trip(text):
    assert number.decode(number.encode(text)) == text

"""Encoded keys: their bytes sort as keys do in DynamoDB, and no key is a prefix of another."""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from hashlib import md5

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynactor.model.keys import key
from dynactor.model.keys.key import KeyAttribute, KeySchema
from tests.model.values.test_number import numbers

# Mostly characters that are difficult to encode.
strings = st.text(
    st.sampled_from("\x00\x01\xffab\u0100") | st.characters(exclude_categories=["Cs"])
)
binaries = st.lists(st.sampled_from([0, 1, 254, 255]) | st.integers(0, 255)).map(bytes)

SIMPLE = KeySchema((KeyAttribute("pk", "S"),))
COMPOSITE = KeySchema((KeyAttribute("pk", "S"),), (KeyAttribute("sk", "N"),))


def string(text: str) -> dict[str, str]:
    return {"S": text}


def binary(raw: bytes) -> dict[str, str]:
    return {"B": b64encode(raw).decode()}


def numeric(text: str) -> dict[str, str]:
    return {"N": text}


def assert_sorts(left: bytes, right: bytes, *, smaller: bool, equal: bool) -> None:
    assert (left < right) == smaller
    assert (left == right) == equal
    if not equal:
        assert not left.startswith(right)
        assert not right.startswith(left)


@given(strings, strings)
@example("a", "a\x00")
@example("", "\x00")
@example("a\x00", "a\x01")
@example("a\x00b", "a\x00")
@example("\x00\x00", "\x00")
def test_strings_sort_by_their_utf_8_and_none_is_a_prefix_of_another(left, right):
    assert_sorts(
        key.encode_value(string(left)),
        key.encode_value(string(right)),
        smaller=left.encode() < right.encode(),
        equal=left == right,
    )


@given(binaries, binaries)
@example(b"a", b"a\x00")
@example(b"\x00\xff", b"\x00")
@example(b"\x00", b"\x00\x00")
def test_binaries_sort_by_unsigned_bytes_and_none_is_a_prefix_of_another(left, right):
    assert_sorts(
        key.encode_value(binary(left)),
        key.encode_value(binary(right)),
        smaller=left < right,
        equal=left == right,
    )


@given(numbers(), numbers())
@example("0", "0.1")
@example("-1", "-1.01")
@example("1", "1.01")
@example("0." + "0" * 129 + "1", "0")
def test_numbers_sort_by_value_and_none_is_a_prefix_of_another(left, right):
    assert_sorts(
        key.encode_value(numeric(left)),
        key.encode_value(numeric(right)),
        smaller=Decimal(left) < Decimal(right),
        equal=left == right,
    )


@given(st.tuples(strings, numbers()), st.tuples(strings, numbers()))
@example(("a", "1"), ("a\x00", "0"))
@example(("a", "-1"), ("a", "1"))
def test_consecutive_values_sort_by_the_first_then_the_second(left, right):
    schema = KeySchema((), (KeyAttribute("a", "S"), KeyAttribute("b", "N")))

    encoded = [
        key.encode_sort(schema, {"a": string(text), "b": numeric(amount)})
        for text, amount in (left, right)
    ]

    ordered = [(text.encode(), Decimal(amount)) for text, amount in (left, right)]
    assert_sorts(*encoded, smaller=ordered[0] < ordered[1], equal=ordered[0] == ordered[1])


@given(strings, strings)
@example("a\x00b", "a\x00")
@example("a\x01", "a\x00")
@example("ab", "")
def test_an_encoded_prefix_begins_exactly_the_strings_with_that_prefix(text, beginning):
    begins = key.encode_value(string(text)).startswith(key.encode_prefix(string(beginning)))

    assert begins == text.encode().startswith(beginning.encode())


@given(binaries, binaries)
@example(b"\x00\xff", b"\x00")
@example(b"\x00", b"\x00\xff")
def test_an_encoded_binary_prefix_begins_exactly_the_binaries_with_that_prefix(raw, beginning):
    begins = key.encode_value(binary(raw)).startswith(key.encode_prefix(binary(beginning)))

    assert begins == raw.startswith(beginning)


@pytest.mark.parametrize(
    ("value", "hashed"),
    [
        (string("a"), b"a"),
        (string("é"), b"\xc3\xa9"),
        (binary(b"\x00\xff"), b"\x00\xff"),
        (numeric("0"), b"\x80"),
        (numeric("12.5"), b"\xc1\x0d\x33"),
    ],
)
def test_the_hash_is_the_beginning_of_the_md5_digest_of_a_prefix_and_the_key(value, hashed):
    expected = md5(b"Outliers" + hashed, usedforsecurity=False).digest()[:8]

    assert key.partition_hash([value]) == expected


def test_a_key_is_its_hash_its_partition_key_and_its_sort_key():
    item = {"pk": string("a"), "sk": numeric("1"), "other": string("z")}
    partition = key.encode_partition(COMPOSITE, item)

    assert partition == key.partition_hash([string("a")]) + key.encode_value(string("a"))
    assert key.encode(COMPOSITE, item) == partition + key.encode_value(numeric("1"))
    assert key.encode(SIMPLE, item) == partition
    assert key.encode_sort(SIMPLE, item) == b""


@given(strings, numbers())
@example("\x00", "0")
@example("a\x00", "-1")
@example("", "1" + "0" * 125)
def test_a_position_is_split_after_its_partition_key(text, sort):
    item = {"pk": string(text), "sk": numeric(sort)}
    turned = KeySchema(
        (KeyAttribute("sk", "N"),),
        (KeyAttribute("pk", "S"),),
    )
    for schema in (COMPOSITE, turned, SIMPLE):
        parts = (key.encode_partition(schema, item), key.encode_sort(schema, item))
        assert key.split(schema, key.encode(schema, item)) == parts


def test_a_keys_attributes_come_in_the_order_of_the_schema():
    item = {"sk": numeric("1"), "other": string("z"), "pk": string("a")}

    assert list(COMPOSITE.extract_key(item)) == ["pk", "sk"]
    assert COMPOSITE.extract_key(item) == {"pk": string("a"), "sk": numeric("1")}

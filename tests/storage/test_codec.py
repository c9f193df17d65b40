"""Encoding of an item as the value of a row, and invalid values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import codec
from dynactor.storage.store import Damaged

items = st.builds(
    StoredItem, st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.binary(max_size=40)
)


def fields(stored: StoredItem) -> tuple[int, int, bytes]:
    return stored.version, stored.size_bytes, stored.data


@given(st.lists(items))
def test_an_encoded_item_is_decoded_unchanged(stored):
    values = [codec.encode(each) for each in stored]
    assert [fields(codec.decode(value)) for value in values] == [fields(each) for each in stored]
    assert [fields(each) for each in codec.decode_all(values)] == [fields(each) for each in stored]


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x01" * 12, b"\x00" * 20, b"\x02" * 20])
def test_a_value_with_an_unknown_header_is_reported_as_damaged(value):
    known = codec.encode(StoredItem(1, 2, b"{}"))
    with pytest.raises(Damaged, match="a format that this version knows"):
        codec.decode(value)
    with pytest.raises(Damaged, match="a format that this version knows"):
        codec.decode_all([known, value])

"""The explanation header is one line of ASCII of limited length."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from dynactor.api.answers.explain import EXPLANATION_BYTES, header_text, is_wanted
from dynactor.model.advice.explained_costs import Paid
from dynactor.model.capacity import EntryWrite, ItemWrite, KeyRead, RangeRead, Receipt
from tests.support.databases.databases import table_definition

NAMES = st.text("abcXYZ019_.-", min_size=3, max_size=255)
SIZES = st.integers(0, 400 * 1024)
UNITS = st.integers(0, 1_000)
KINDS = st.sampled_from(["LocalSecondaryIndexes", "GlobalSecondaryIndexes"])
ENTRIES = st.builds(
    EntryWrite,
    NAMES,
    KINDS,
    st.just(0.0),
    UNITS.map(float),
    st.none() | SIZES,
    st.none() | SIZES,
    st.booleans(),
)
WORK = st.one_of(
    st.builds(KeyRead, SIZES, UNITS.map(float), st.booleans()),
    st.builds(
        RangeRead,
        st.booleans(),
        st.none() | NAMES,
        st.none() | KINDS,
        st.booleans(),
        st.integers(0, 10_000),
        st.integers(0, 10_000),
        st.lists(SIZES, min_size=1, max_size=80).map(tuple),
        UNITS.map(float),
        UNITS,
        UNITS,
        UNITS.map(float),
    ),
    st.builds(
        ItemWrite,
        st.none() | SIZES,
        st.none() | SIZES,
        UNITS,
        st.lists(ENTRIES, max_size=25).map(tuple),
        st.booleans(),
    ),
)
RECEIPTS = st.builds(
    Receipt,
    UNITS.map(float),
    UNITS.map(float),
    st.just(()),
    st.lists(WORK, max_size=100).map(tuple),
)
DEFINITION = table_definition()


@given(st.lists(st.tuples(NAMES, RECEIPTS), min_size=1, max_size=30))
def test_any_explanation_is_one_line_of_bounded_length(done):
    paid = [Paid(structs.replace(DEFINITION, name=name), receipt) for name, receipt in done]

    text = header_text("BatchGetItem", paid)

    assert text.isascii()
    assert text.isprintable()
    assert len(text) <= EXPLANATION_BYTES
    assert json.loads(text)["CapacityUnits"] == sum(receipt.total_units for _, receipt in done)


def test_an_explanation_is_requested_by_true():
    assert [is_wanted(text) for text in ("true", "True", " true ", "false", "1", "yes")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]

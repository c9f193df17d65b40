"""Sequence numbers are ordered, and clients see 21 digits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.streams import sequence_number
from dynactor.streams.sequence_number import COUNTER_BITS, SequenceNumber

numbers = st.builds(
    SequenceNumber,
    st.integers(0, (1 << (64 - COUNTER_BITS)) - 1),
    st.integers(0, (1 << COUNTER_BITS) - 1),
)


@given(numbers)
def test_a_number_is_read_back_from_its_text(number: SequenceNumber):
    text = number.wire()
    assert len(text) == 21
    assert sequence_number.parse(text) == number
    assert sequence_number.unpack(number.packed()) == number


@given(numbers, numbers)
def test_texts_sort_as_the_numbers_do(left: SequenceNumber, right: SequenceNumber):
    assert (left.wire() < right.wire()) == (left < right)
    assert (left.packed() < right.packed()) == (left < right)


@pytest.mark.parametrize(
    "text",
    ["", "x" * 21, "-" + "1" * 20, "9" * 21, "9" * 40, "\N{ARABIC-INDIC DIGIT ONE}" * 21, "1 "],
)
def test_an_invalid_number_is_not_parsed(text: str):
    assert sequence_number.parse(text) is None


def test_a_number_may_have_more_leading_zeros():
    assert sequence_number.parse("1".zfill(40)) == SequenceNumber(0, 1)

"""A change record round-trips through its row."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.storage.store import Damaged
from dynactor.streams import change_log, change_record
from dynactor.streams.change_record import ChangeRecord, Origin, TransactionPlace
from dynactor.streams.sequence_number import SequenceNumber
from tests.properties import strategies
from tests.support.streams.changes import change

KEY = {"pk": {"S": "a"}}

images = st.one_of(st.none(), strategies.items)
transactions = st.builds(
    TransactionPlace, st.binary(min_size=1, max_size=36), st.integers(0, 99), st.integers(1, 100)
)
changes = st.builds(
    change,
    st.builds(lambda key: {"pk": key}, strategies.strings),
    images,
    images,
    st.builds(SequenceNumber, st.integers(1, 1 << 25), st.integers(1, 1 << 37)),
    commit_time_us=st.integers(0, 1 << 62),
    origin=st.sampled_from(Origin),
    transaction=st.one_of(st.none(), transactions),
    author=st.sampled_from(("", "AKIDAPP")),
)


def shown(record: ChangeRecord) -> list[Any]:
    """All fields of a record, in a form that ``==`` compares deeply."""
    found = [
        record.sequence_number,
        record.commit_time_us,
        record.origin,
        record.key,
        record.transaction,
        record.author,
    ]
    return found + [
        image and (image.version, image.size_bytes, image.item)
        for image in (record.old, record.new)
    ]


@given(changes)
def test_a_record_round_trips_through_its_row(record: ChangeRecord):
    _, value = change_log.row(record)
    assert shown(change_record.decode(record.sequence_number, value)) == shown(record)


def test_a_row_of_the_first_format_stays_readable():
    layout = (
        "01 03 000000000000007b"  # format, transaction, commit time
        "000000c000000006 00000003"  # the old image's version and size; 0 for none
        "000000c000000007 00000006"  # the new image's
        "0010 00000010 0000001e"  # lengths of the keys and of both images
        "02 0001 0002"  # length of the transaction's id, place in it
    )
    value = b"".join(
        (
            bytes.fromhex(layout),
            b'{"pk":{"S":"a"}}',
            b'{"pk":{"S":"a"}}',
            b'{"pk":{"S":"a"},"n":{"N":"1"}}',
            b"id",
        )
    )
    number = SequenceNumber(3, 7)
    written = change(
        KEY,
        {},
        {"n": {"N": "1"}},
        number,
        commit_time_us=123,
        origin=Origin.TRANSACTION,
        transaction=TransactionPlace(b"id", 1, 2),
    )
    assert shown(change_record.decode(number, value)) == shown(written)
    assert change_log.row(written)[1] == value


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x02" + bytes(100)])
def test_an_unknown_format_is_reported(value: bytes):
    with pytest.raises(Damaged):
        change_record.decode(SequenceNumber(1, 1), value)

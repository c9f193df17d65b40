"""A shard iterator round-trips, and other texts are refused."""

from base64 import urlsafe_b64encode
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack, structs

from dynactor.streams import shard_iterator
from dynactor.streams.shard_iterator import Cursor

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/Thread/stream/2026-11-20T11:30:15.123"
PLACE = Cursor(ARN, "shardId-00000001795175136489-55b73a41", 7, 1_795_175_136_489)


@given(st.integers(0, (1 << 38) - 1), st.integers(0, 1 << 50))
def test_an_iterator_round_trips_through_its_text(after: int, issued_epoch_ms: int):
    place = structs.replace(PLACE, after=after, issued_epoch_ms=issued_epoch_ms)
    assert shard_iterator.parse(shard_iterator.encode(place)) == place


def test_the_iterator_of_the_longest_names_has_a_valid_length():
    arn = f"arn:aws:dynamodb:us-gov-west-1:123456789012:table/{'x' * 255}/stream/{'9' * 23}"
    assert len(shard_iterator.encode(structs.replace(PLACE, stream_arn=arn))) < 1024


@given(st.data())
def test_a_modified_iterator_is_invalid(data: st.DataObject):
    text = shard_iterator.encode(PLACE)
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, len(text)))
    changed = text[:at] + data.draw(st.text(max_size=3)) + text[end:]
    if changed != text:
        assert shard_iterator.parse(changed) is None


@given(st.text())
def test_a_text_that_is_no_iterator_is_invalid(text: str):
    assert shard_iterator.parse(text) is None
    assert shard_iterator.parse(f"{ARN}|1|{text}") is None


@pytest.mark.parametrize(
    "hidden", [(), ("shard",), ("shard", -1, 0), ("shard", 1 << 38, 0), (1, 2, 3)]
)
def test_a_forged_iterator_with_impossible_values_is_invalid(hidden: tuple[object, ...]):
    body = msgpack.encode(hidden)
    checksum = blake2b(f"{ARN}|".encode() + body, digest_size=8).digest()
    assert shard_iterator.parse(f"{ARN}|1|{urlsafe_b64encode(checksum + body).decode()}") is None

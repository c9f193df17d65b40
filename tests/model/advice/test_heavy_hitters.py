"""The keys with the largest weights: exact if there are few keys, else within a bounded error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.advice.heavy_hitters import (
    Heavy,
    HeavyHitters,
    KeySummary,
    heaviest,
    most_of_any,
)

KEYS = st.integers(0, 200).map(lambda number: b"key %d" % number)
STREAMS = st.lists(st.tuples(KEYS, st.integers(1, 50)), max_size=600)


def counted(stream: Iterable[tuple[bytes, float]], most_keys: int) -> HeavyHitters:
    hitters = HeavyHitters(most_keys)
    for key, weight in stream:
        hitters.add(key, weight)
    return hitters


def weights(stream: Iterable[tuple[bytes, float]]) -> Counter[bytes]:
    true: Counter[bytes] = Counter()
    for key, weight in stream:
        true[key] += weight
    return true


def test_few_keys_are_counted_exactly():
    hitters = counted([(b"a", 3), (b"b", 1), (b"a", 0.5)], 2)

    assert hitters.summary(2) == KeySummary(4.5, ((b"a", 3.5), (b"b", 1.0)), 0.0, 0.0)


def test_a_key_that_is_not_listed_weighs_no_more_than_the_next_one():
    hitters = counted([(b"a", 3), (b"b", 2), (b"c", 1)], 5)

    assert hitters.summary(1) == KeySummary(6, ((b"a", 3.0),), 0.0, 2.0)


@given(STREAMS, st.integers(1, 40))
def test_no_key_is_counted_too_high_nor_lower_than_by_the_error(stream, most_keys):
    true = weights(stream)

    summary = counted(stream, most_keys).summary(most_keys)

    listed = dict(summary.keys)
    assert len(listed) <= most_keys
    for key, weight in listed.items():
        assert weight <= true[key] <= weight + summary.error
    for key in true.keys() - listed.keys():
        assert true[key] <= summary.unlisted


@given(STREAMS, st.integers(1, 40))
def test_the_error_is_at_most_twice_the_total_over_the_keys(stream, most_keys):
    hitters = counted(stream, most_keys)

    assert hitters.total == sum(weight for _, weight in stream)
    assert hitters.error <= 2 * hitters.total / most_keys


def test_a_summary_lists_no_keys_if_each_occurs_once():
    hitters = counted(((b"%d" % number, 1) for number in range(65_000)), 64)

    assert hitters.error == 1_000
    assert hitters.summary(64) == KeySummary(65_000, (), 1_000, 1_000)


def test_every_key_that_has_more_than_the_error_is_found_in_a_skewed_stream():
    draw = Random(5)
    stream = [(b"%d" % int(draw.paretovariate(0.9)), 1.0) for _ in range(50_000)]
    true = weights(stream)

    hitters = counted(stream, 128)

    listed = dict(hitters.summary(128).keys)
    certain = {key for key, weight in true.items() if weight > hitters.error}
    assert len(certain) > 20
    assert certain <= listed.keys()


@given(st.lists(STREAMS, max_size=5), st.integers(1, 20), st.integers(1, 20))
def test_merged_summaries_bound_the_weights_of_all_their_streams(streams, most_keys, kept):
    true = weights(each for stream in streams for each in stream)
    summaries = [counted(stream, most_keys).summary(kept) for stream in streams]

    found = heaviest(summaries, 30)

    assert [heavy.least for heavy in found] == sorted(
        (heavy.least for heavy in found), reverse=True
    )
    for heavy in found:
        assert heavy.least <= true[heavy.key] <= heavy.most + 1e-9
    assert max(true.values(), default=0) <= most_of_any(summaries) + 1e-9


def test_a_merged_key_has_the_sum_of_its_weights():
    one = counted([(b"a", 3), (b"b", 2), (b"c", 1)], 5).summary(2)
    other = counted([(b"b", 2)], 5).summary(2)

    assert heaviest([one, other], 2) == [Heavy(b"b", 4, 4), Heavy(b"a", 3, 3)]
    assert heaviest([one, one], 3)[0] == Heavy(b"a", 6, 6)

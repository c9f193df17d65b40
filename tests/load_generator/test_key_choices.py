"""The choices of keys: their distributions, and the same keys for the same seed."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from dynactor.load.work.keys import (
    Latest,
    Sequential,
    UnknownChoice,
    Zipfian,
    generalized_harmonic,
    key_choice,
    scattered,
)

_DRAWS = 100_000
_KEYS = 1_000


def drawn(specification: str, keys: int = _KEYS, draws: int = _DRAWS) -> Counter[int]:
    choice = key_choice(specification, Random(7))
    return Counter(choice.draw(keys) for _ in range(draws))


def test_every_key_is_as_likely_as_any_other_in_a_uniform_choice():
    counts = drawn("uniform")
    assert len(counts) == _KEYS
    assert max(abs(count - _DRAWS / _KEYS) for count in counts.values()) < 6 * math.sqrt(100)


@pytest.mark.parametrize("theta", [0.5, 0.99])
def test_zipfian_shares_are_those_of_the_law(theta: float):
    choice = Latest(Random(7), theta)
    counts = Counter(_KEYS - 1 - choice.draw(_KEYS) for _ in range(_DRAWS))
    whole = generalized_harmonic(_KEYS, theta)
    # The first two ranks are exact; Gray's formula for the others deviates by a few percent.
    for rank in (0, 1):
        expected = (rank + 1) ** -theta / whole * _DRAWS
        assert counts[rank] == pytest.approx(expected, abs=4 * math.sqrt(expected))
    for first, last in ((2, 10), (10, 100), (100, 1_000)):
        expected = sum((rank + 1) ** -theta for rank in range(first, last)) / whole * _DRAWS
        assert sum(counts[rank] for rank in range(first, last)) == pytest.approx(expected, rel=0.1)


def test_the_hottest_keys_of_a_zipfian_choice_are_scattered():
    hottest = [key for key, _ in drawn("zipfian").most_common(10)]
    assert scattered(0) % _KEYS == hottest[0]
    assert max(hottest) - min(hottest) > _KEYS / 4


def test_the_latest_key_is_chosen_most_often_even_when_keys_are_added():
    choice = Latest(Random(7))
    for keys in (100, 101, 5_000):
        counts = Counter(choice.draw(keys) for _ in range(5_000))
        assert counts.most_common(1)[0][0] == keys - 1
        assert min(counts) >= 0


def test_a_hot_set_gets_its_share():
    counts = drawn("hot-set:0.1:0.9")
    hot = sum(count for key, count in counts.items() if key < _KEYS / 10)
    assert hot / _DRAWS == pytest.approx(0.9, abs=0.01)
    assert len(counts) == _KEYS


def test_a_sequential_choice_repeats_all_keys_in_order():
    choice = Sequential(Random(7))
    places = [choice.draw(10) for _ in range(20)]
    assert sorted(places[:10]) == list(range(10))
    assert places[10:] == places[:10]
    assert all((one + 1) % 10 == other for one, other in pairwise(places))


@pytest.mark.parametrize(
    "specification", ["uniform", "zipfian:0.7", "latest", "hot-set", "sequential"]
)
@pytest.mark.parametrize("keys", [1, 2, 3, 10])
def test_every_choice_returns_an_existing_key(specification: str, keys: int):
    assert drawn(specification, keys, 500).keys() <= set(range(keys))


def test_the_same_seed_draws_the_same_keys():
    draws = [[Zipfian(Random(seed)).draw(_KEYS) for _ in range(3)] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_the_approximation_of_a_long_sum_of_ranks_is_close():
    exact = math.fsum(rank**-0.99 for rank in range(1, 200_001))
    assert generalized_harmonic(200_000, 0.99) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    "specification", ["random", "zipfian:1", "zipfian:x", "hot-set:0.1", "uniform:2", "hot-set:0:1"]
)
def test_an_unknown_choice_is_refused_with_a_list_of_the_valid_ones(specification: str):
    with pytest.raises(UnknownChoice, match=r"zipfian\[:THETA\]"):
        key_choice(specification, Random(1))

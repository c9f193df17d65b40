"""Latencies are counted to three digits, can be added up, and match HdrHistogram's tools."""

from __future__ import annotations

import math
from random import Random

import pytest

from dynactor.load.results.histogram import (
    HIGHEST_US,
    Histogram,
    NotAHistogram,
    bucket,
    highest,
    merged,
    of_values,
)

# Made by the package hdrhistogram 0.10.8 from the values of `recorded`, with its results.
ENCODED = (
    "HISTFAAAAyp4nC2If0hddRiH/bzvy4rW6du6nU6ns9Pp7nQ73W52s5vd7ObMzGzZss3W2taqVatWrbVq1fop7mJiYu"
    "LExMTExMTERERERExERERERERERERERC4iIiK2oj1/PA88++NXfUlJfDTpf/h68Z/++ZeMxPVBLDfs2Xujusl3s3GL"
    "datzm3u7d0fozvBdkf3Ru2P3ZBzIujfnvtz78x7If/D4Q6cefuORtx9977EPH7/wxGdPfnnwm6d+ePoKnvkRz/6E53"
    "7G81fxwi948Ve89BuO/o6X/8Arf+LVv3DywmsnXj/95um3zrxz5t2z75/94NxH5z4+/8n5Ty9+fvGLS19d+vryt5e/"
    "/64A6YXIiCOjCJnFyCxBVimyypBdjuwK5FQipwqHqnGoBrm1yK3D4XocbkBeI/KacKQZR1qQ34r8Nhxrx7EOHO9EZh"
    "dC3Qj1INSL5D4k9yN5AMmDCA8hPIzwCMKjSBlDyjhSJpAyicgUItOIzCAyi9Q5pM4jdQGpi4guIbqM6Aqiq0hbQ1oC"
    "aetI20BsE7EtxLYR20H6LtILyC4kO052ETnFZJeQU0pOGTnl5FSQU0lOFfmryakhfy3568hfT/4G8jeSv4ncZvK3kN"
    "tKbhu57eR2kNtJbhcFusntoUAvBfoo0E+BAQoMUmCIvGEKjJA3St4YeePkTZA3Sd4UBafJm6HgLAXnKDhPwQUKLlJw"
    "iULLFFwhfZV8a6QnyLdO+gb5NknfIn2b9B3Sd0kvYL2Q9TjrRawXs17CRinrZWyUs17BRiXrVWxUs1HDRi0bdWzUs9"
    "HARiMbTWw0s9HCZisbbWy2s9HBZicbXWx2s9nDZi+bfWz2sznA5iCbQ2wOsznC1iibY2yNsznB1iSbU2xNszXD1ixb"
    "c2zNs7XA1iJbS2wts7XC9ipba2wn2Fpne4OtTba32N5me4ftXbYLRCsULS5akWjFopWIVipamahy0SpEqxStSlS1aD"
    "WiakWrE1UvWoOoRtGaRDWL1iKqVVSbqHbROkR1iuoS1S2qR1SvqD5R/aIGRA2KGhI1LGpE1KioMdk3LmpC1KSoKfk7"
    "gT3XALou/ow="
)
PERCENTILES = {1.0: 900, 50.0: 44959, 90.0: 80703, 99.0: 88831, 99.9: 89407, 100.0: 3_001_024_511}


def recorded() -> Histogram:
    return of_values({**{number * number: number for number in range(1, 300)}, 3_000_000_000: 3})


@pytest.mark.parametrize("value", [0, 1, 2_047, 2_048, 2_049, 12_345, 9_999_999, HIGHEST_US])
def test_a_value_is_counted_with_three_digits(value: int):
    shown = highest(bucket(value))
    assert value <= shown <= value * 1.001


def test_a_value_beyond_the_range_counts_as_the_highest():
    histogram = Histogram()
    histogram.record(1 << 40)
    assert histogram.maximum == HIGHEST_US


def test_percentiles_are_those_of_the_sorted_values():
    random = Random(3)
    values = sorted(int(random.lognormvariate(7, 2)) for _ in range(10_000))
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    for rank in (1, 100, 5_000, 9_000, 9_900, 9_990, 9_999, 10_000):
        assert histogram.percentile(rank / 100) == highest(bucket(values[rank - 1]))
    assert histogram.mean == pytest.approx(sum(values) / len(values), rel=1e-3)


def test_an_empty_histogram_has_no_percentile():
    assert math.isnan(Histogram().percentile(50))
    assert math.isnan(Histogram().mean)
    assert math.isnan(Histogram().maximum)


def test_the_sum_of_the_workers_histograms_is_the_histogram_of_all_requests():
    random = Random(5)
    values = [int(random.expovariate(1 / 5_000)) for _ in range(5_000)]
    parts = [Histogram(), Histogram(), Histogram()]
    whole = Histogram()
    for value in values:
        random.choice(parts).record(value)
        whole.record(value)
    added = merged(parts)
    assert added.counts == whole.counts
    assert added.total == len(values)
    # The mean of the workers' percentiles would be wrong.
    assert added.percentile(99) == whole.percentile(99)


def test_a_histogram_round_trips_through_its_text():
    again = Histogram.decode(recorded().encode())
    assert again.counts == recorded().counts
    assert Histogram.decode(Histogram().encode()).counts == {}


def test_counts_of_any_size_round_trip():
    histogram = Histogram({1: 1, 2: 127, 3: 128, 70: (1 << 62) - 1})
    assert Histogram.decode(histogram.encode()).counts == histogram.counts


def test_the_text_of_hdrhistogram_can_be_read():
    histogram = Histogram.decode(ENCODED)
    assert histogram.counts == recorded().counts
    assert {percent: histogram.percentile(percent) for percent in PERCENTILES} == PERCENTILES


@pytest.mark.parametrize("text", ["", "nothing", "AAAA", ENCODED[:60], "HISTFAAAAAF4"])
def test_a_text_that_is_no_histogram_is_refused(text: str):
    with pytest.raises(NotAHistogram):
        Histogram.decode(text)

"""Counts latencies like HdrHistogram: with three significant digits on any scale.

Values are whole microseconds. The text form is HdrHistogram's own, version 2 and compressed, so its
tools for other languages can read it. The package hdrhistogram is not used, because it has no
wheels for Linux on ARM and needs setuptools at run time.
"""

from __future__ import annotations

import math
import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Final

_DIGITS: Final = 3
# Three exact digits need 2,048 buckets of width 1, then half as many for each doubled width.
_HALF_BITS: Final = 10
_HALF: Final = 1 << _HALF_BITS
_LOWEST: Final = 1
# Over an hour; longer latencies count as this.
HIGHEST_US: Final = (1 << 32) - 1

_COOKIE: Final = 0x1C849303 | 0x10
_COMPRESSED_COOKIE: Final = 0x1C849304 | 0x10
_OUTER: Final = struct.Struct(">iI")
_INNER: Final = struct.Struct(">iiiiqqd")
_LEB_BITS: Final = 7
_LEB_MORE: Final = 0x80
# The ninth byte uses all eight bits, without a continuation bit.
_LEB_LAST_SHIFT: Final = 56


class NotAHistogram(ValueError):
    """The text is not a histogram of this form."""


def bucket(microseconds: int) -> int:
    """The number of the bucket that counts a value."""
    value = min(microseconds, HIGHEST_US)
    doublings = max(value.bit_length() - _HALF_BITS - 1, 0)
    return (doublings << _HALF_BITS) + (value >> doublings)


def highest(number: int) -> int:
    """The highest value of a bucket, so percentiles are never shown too low."""
    doublings = max((number >> _HALF_BITS) - 1, 0)
    lowest = (number - (doublings << _HALF_BITS)) << doublings
    return lowest + (1 << doublings) - 1


class Histogram:
    """Counts by bucket. Invariants: counts are positive, ``total`` is their sum."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: dict[int, int] = dict(counts or {})
        self.total = sum(self.counts.values())

    def record(self, microseconds: int, count: int = 1) -> None:
        """Count a value."""
        number = bucket(microseconds)
        self.counts[number] = self.counts.get(number, 0) + count
        self.total += count

    def add(self, other: Histogram) -> None:
        """Add all counts of another histogram."""
        for number, count in other.counts.items():
            self.counts[number] = self.counts.get(number, 0) + count
        self.total += other.total

    def percentile(self, percent: float) -> float:
        """The value in microseconds that this share of all values does not exceed; NaN if empty."""
        left = max(1, math.ceil(percent / 100 * self.total - 1e-9))
        for number in sorted(self.counts):
            left -= self.counts[number]
            if left <= 0:
                return highest(number)
        return math.nan

    @property
    def mean(self) -> float:
        """The mean in microseconds; NaN if empty."""
        if not self.total:
            return math.nan
        return sum(_middle(number) * count for number, count in self.counts.items()) / self.total

    @property
    def maximum(self) -> float:
        """The maximum in microseconds; NaN if empty."""
        return highest(max(self.counts)) if self.counts else math.nan

    def encode(self) -> str:
        """The histogram in HdrHistogram's text form."""
        words = b"".join(map(_leb, self._words()))
        inner = _INNER.pack(_COOKIE, len(words), 0, _DIGITS, _LOWEST, HIGHEST_US, 1.0) + words
        packed = zlib.compress(inner)
        return b64encode(_OUTER.pack(_COMPRESSED_COOKIE, len(packed)) + packed).decode()

    def _words(self) -> Iterable[int]:
        """A count for each used bucket, and a negative length for each run of empty buckets."""
        expected = 0
        for number in sorted(self.counts):
            if number > expected:
                yield expected - number
            yield self.counts[number]
            expected = number + 1

    @classmethod
    def decode(cls, text: str) -> Histogram:
        """The histogram from its text form.

        Raises:
            NotAHistogram: the text is invalid, or has other digits or another range.
        """
        try:
            packed = b64decode(text, validate=True)
            cookie, length = _OUTER.unpack_from(packed)
            inner = zlib.decompress(packed[_OUTER.size : _OUTER.size + length])
            header = _INNER.unpack_from(inner)
        except (ValueError, ArithmeticError, zlib.error, struct.error) as error:
            raise NotAHistogram(f"not an HdrHistogram: {error}") from error
        if (cookie, header[0]) != (_COMPRESSED_COOKIE, _COOKIE):
            raise NotAHistogram("not an HdrHistogram of version 2, compressed")
        if header[3:5] != (_DIGITS, _LOWEST):
            raise NotAHistogram("an HdrHistogram of other digits or another unit")
        counts: dict[int, int] = {}
        number = 0
        for word in _unleb(inner[_INNER.size :]):
            if word < 0:
                number -= word
            else:
                if word:
                    counts[number] = word
                number += 1
        return cls(counts)


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """A histogram with the counts of all of these."""
    whole = Histogram()
    for each in histograms:
        whole.add(each)
    return whole


def of_values(values: Mapping[int, int]) -> Histogram:
    """A histogram of values in microseconds, from the count of each value."""
    made = Histogram()
    for microseconds, count in values.items():
        made.record(microseconds, count)
    return made


def _middle(number: int) -> float:
    doublings = max((number >> _HALF_BITS) - 1, 0)
    return highest(number) - ((1 << doublings) - 1) / 2


def _leb(word: int) -> bytes:
    """A number as ZigZag LEB128."""
    left = word << 1 if word >= 0 else (-word << 1) - 1
    made = bytearray()
    while left >= _LEB_MORE and len(made) < _LEB_LAST_SHIFT // _LEB_BITS:
        made.append(left & (_LEB_MORE - 1) | _LEB_MORE)
        left >>= _LEB_BITS
    made.append(left)
    return bytes(made)


def _unleb(data: bytes) -> Iterable[int]:
    value, shift = 0, 0
    for byte in data:
        if shift < _LEB_LAST_SHIFT and byte & _LEB_MORE:
            value |= (byte & (_LEB_MORE - 1)) << shift
            shift += _LEB_BITS
            continue
        value |= byte << shift
        yield -((value + 1) >> 1) if value & 1 else value >> 1
        value, shift = 0, 0

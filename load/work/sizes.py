"""How large an item is: a size in bytes for each share of the items, from the smallest on.

A size is a function of a number between 0 and 1, not a draw: whoever knows an item's number and
version knows its size, and can tell whether what was read is what was written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from statistics import NormalDist
from typing import Final

SPECIFICATIONS: Final = (
    "BYTES, FROM-TO (even), exponential:MEAN or lognormal:MEDIAN:SIGMA, such as 300, 100-2000, "
    "exponential:800, lognormal:300:0.7"
)
# DynamoDB's limit is 409,600 B with the names of attributes, which is estimated here.
MAX_BYTES: Final = 400_000

_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"
_SIZE: Final = re.compile(
    rf"(?P<fixed>{_NUMBER})|(?P<even>{_NUMBER}-{_NUMBER})"
    rf"|(?P<exponential>exponential:{_NUMBER})|(?P<lognormal>lognormal:{_NUMBER}:{_NUMBER})"
)

Sizes = Callable[[float], int]


class UnknownSizes(ValueError):
    """A specification that names no sizes; the message says which there are."""


def sizes(specification: str) -> Sizes:
    """The sizes that a specification names, none above ``MAX_BYTES``.

    Raises:
        UnknownSizes: it names none.
    """
    matched = _SIZE.fullmatch(specification)
    if matched is None or matched.lastgroup is None:
        raise UnknownSizes(f"{specification!r} is no item size: give {SPECIFICATIONS}")
    text = matched[matched.lastgroup]
    first, *others = (float(each) for each in re.findall(_NUMBER, text))
    second = others[0] if others else first
    if not 1 <= first <= MAX_BYTES or (matched.lastgroup == "even" and second < first):
        raise UnknownSizes(f"{specification!r} is no item size of 1 to {MAX_BYTES:,} bytes")
    match matched.lastgroup:
        case "fixed" | "even":
            return lambda share: min(MAX_BYTES, int(first + share * (second - first + 0.999_999)))
        case "exponential":
            return lambda share: min(MAX_BYTES, int(-first * math.log1p(-share)))
        case _:
            deviations = NormalDist().inv_cdf
            return lambda share: min(
                MAX_BYTES, int(first * math.exp(second * deviations(max(share, 1e-12))))
            )

"""The size of an item in bytes: a function from a share of the items to a size.

The argument is a number between 0 and 1 instead of a random draw. So the number and version of an
item determine its size, and a reader can check that it read the item as written.
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
# DynamoDB's limit is 409,600 bytes including the names of attributes, which are estimated here.
MAX_BYTES: Final = 400_000

_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"
_SIZE: Final = re.compile(
    rf"(?P<fixed>{_NUMBER})|(?P<even>{_NUMBER}-{_NUMBER})"
    rf"|(?P<exponential>exponential:{_NUMBER})|(?P<lognormal>lognormal:{_NUMBER}:{_NUMBER})"
)

Sizes = Callable[[float], int]


class UnknownSizes(ValueError):
    """The specification is invalid; the message lists the valid ones."""


def sizes(specification: str) -> Sizes:
    """The sizes for a specification, at most ``MAX_BYTES``.

    Raises:
        UnknownSizes: the specification is invalid.
    """
    matched = _SIZE.fullmatch(specification)
    if matched is None or matched.lastgroup is None:
        raise UnknownSizes(f"{specification!r} is not an item size: give {SPECIFICATIONS}")
    text = matched[matched.lastgroup]
    first, *others = (float(each) for each in re.findall(_NUMBER, text))
    second = others[0] if others else first
    if not 1 <= first <= MAX_BYTES or (matched.lastgroup == "even" and second < first):
        raise UnknownSizes(f"{specification!r} is not an item size of 1 to {MAX_BYTES:,} bytes")
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

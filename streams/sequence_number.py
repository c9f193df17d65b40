"""Sequence numbers: a partition's number and its own counter in 64 bits.

They rise within a partition without reuse, and from a partition to its children, whose numbers
are higher. There is no order over the whole process.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

# 67 million partitions in a store's life, 274 thousand million changes in each one's.
COUNTER_BITS: Final = 38
_COUNTER_MASK: Final = (1 << COUNTER_BITS) - 1
# The model asks for 21 to 40 digits; a 64-bit number has at most 20.
_WIRE_DIGITS: Final = 21


class SequenceNumber(Struct, frozen=True, order=True, gc=False):
    """One change: the ``counter``-th of partition ``partition_number``."""

    partition_number: int
    counter: int

    def packed(self) -> int:
        """As one number of 64 bits, which sorts as the pair does."""
        return self.partition_number << COUNTER_BITS | self.counter

    def wire(self) -> str:
        """As clients see it: decimal, 21 digits."""
        return f"{self.packed():0{_WIRE_DIGITS}d}"


def unpack(packed: int) -> SequenceNumber:
    """The pair in a number of 64 bits."""
    return SequenceNumber(packed >> COUNTER_BITS, packed & _COUNTER_MASK)


def parse(text: str) -> SequenceNumber | None:
    """The sequence number that a client gives; None if it is none of ours."""
    if not (text.isascii() and text.isdigit()):
        return None
    number = int(text)
    return unpack(number) if number < 1 << 64 else None

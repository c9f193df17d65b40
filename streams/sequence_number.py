"""Sequence numbers: a partition's number and its own counter in 64 bits.

They increase within a partition without reuse, and from a partition to its children, whose numbers
are higher. There is no order over the whole server.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

# 67 million partitions in a store's life, 274 billion changes in each one.
COUNTER_BITS: Final = 38
_COUNTER_MASK: Final = (1 << COUNTER_BITS) - 1
# The service model requires 21 to 40 digits; a 64-bit number has at most 20.
WIRE_DIGITS: Final = 21


class SequenceNumber(Struct, frozen=True, order=True, gc=False):
    """The number of one change: the ``counter``-th change of partition ``partition_number``."""

    partition_number: int
    counter: int

    def packed(self) -> int:
        """Both numbers as one number of 64 bits, which sorts like the pair."""
        return self.partition_number << COUNTER_BITS | self.counter

    def wire(self) -> str:
        """The public form: decimal, 21 digits."""
        return f"{self.packed():0{WIRE_DIGITS}d}"


def unpack(packed: int) -> SequenceNumber:
    """The pair in a number of 64 bits."""
    return SequenceNumber(packed >> COUNTER_BITS, packed & _COUNTER_MASK)


def parse(text: str) -> SequenceNumber | None:
    """The sequence number that a client sent; None if it is invalid."""
    if not (text.isascii() and text.isdigit()):
        return None
    number = int(text)
    return unpack(number) if number < 1 << 64 else None

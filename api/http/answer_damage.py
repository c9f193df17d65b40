"""Answers that reach a client damaged or not at all, as faults for tests have it."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Self


class AnswerDamage(Enum):
    """What happens to an answer on its way."""

    # The connection is closed, and nothing of the answer is sent.
    CUT = auto()
    # The connection is closed after half of the body.
    CUT_MIDDLE = auto()
    # The header x-amz-crc32 is not that of the body.
    WRONG_CRC32 = auto()


CUTS: Final = frozenset({AnswerDamage.CUT, AnswerDamage.CUT_MIDDLE})


class DamagedBody(bytes):
    """The body of an answer that is to be damaged."""

    damage: AnswerDamage

    def __new__(cls, body: bytes, damage: AnswerDamage) -> Self:
        """The body as it would be, and what happens to it."""
        made = super().__new__(cls, body)
        made.damage = damage
        return made

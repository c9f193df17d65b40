"""Injected damage: answers that reach a client incomplete, with a wrong checksum, or not at all."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Self


class AnswerDamage(Enum):
    """The damage of one answer."""

    # The connection is closed before the answer is sent.
    CUT = auto()
    # The connection is closed after half of the body.
    CUT_MIDDLE = auto()
    # The header x-amz-crc32 does not match the body.
    WRONG_CRC32 = auto()


CUTS: Final = frozenset({AnswerDamage.CUT, AnswerDamage.CUT_MIDDLE})


class DamagedBody(bytes):
    """The body of an answer, with the damage to inject."""

    damage: AnswerDamage

    def __new__(cls, body: bytes, damage: AnswerDamage) -> Self:
        """Make it from the undamaged body."""
        made = super().__new__(cls, body)
        made.damage = damage
        return made

"""The position of a reader in a log of a table."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_NUMBER_BYTES: Final = 8


class Checkpoint(Struct, frozen=True):
    """A position in a log: a counter, and the bytes of all records up to there."""

    counter: int
    logged_bytes: int

    def encode(self) -> bytes:
        """The value of a checkpoint's row."""
        return b"".join(
            part.to_bytes(_NUMBER_BYTES, "big") for part in (self.counter, self.logged_bytes)
        )


def decode(value: bytes | None) -> Checkpoint:
    """The checkpoint in a row's value. Without a row, no change has been applied."""
    value = value or b""
    return Checkpoint(
        int.from_bytes(value[:_NUMBER_BYTES], "big"),
        int.from_bytes(value[_NUMBER_BYTES:], "big"),
    )

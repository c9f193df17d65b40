"""The random numbers of a database, all from one source: for ids, and for jitter of retries."""

from __future__ import annotations

from random import Random, SystemRandom
from typing import Final
from uuid import UUID

_UUID_BYTES: Final = 16


def open_randomness(seed: int | None) -> Random:
    """Return a source: the operating system's, or one that a seed determines."""
    return SystemRandom() if seed is None else Random(seed)  # noqa: S311 - a seed is for tests


def random_uuid(source: Random) -> UUID:
    """Return a UUID of version 4."""
    return UUID(bytes=source.randbytes(_UUID_BYTES), version=4)


def jittered(pause_seconds: float, source: Random) -> float:
    """Return a random pause from half of this pause to all of it, so that retries spread out."""
    return pause_seconds * (0.5 + source.random() / 2)

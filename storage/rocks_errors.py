"""RocksDB's errors as the store's: ``rocksdict`` raises plain ``Exception`` with a text."""

from __future__ import annotations

from typing import Final

from dynactor.storage.store import Damaged, Full, Retry, StoreError

_NO_SPACE: Final = "No space left on device"
_STALL: Final = "Write stall"
# Somebody still reads the engine that is to be opened again.
_IN_USE: Final = "lock hold by current process"
_SAID_BEFORE: Final = "Writer has previous error"


def translate(error: Exception) -> StoreError:
    """The store's error for one of the engine. Whatever it can't do otherwise is damage."""
    text = str(error)
    if _NO_SPACE in text:
        return Full(f"The disk is full: {text}")
    if _STALL in text or _IN_USE in text:
        return Retry(text)
    return Damaged(text)


def repeats_an_error(error: Exception) -> bool:
    """Whether the engine only says that it failed before, and not again why."""
    return _SAID_BEFORE in str(error)

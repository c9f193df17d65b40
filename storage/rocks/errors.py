"""RocksDB's errors as the store's: ``rocksdict`` raises plain ``Exception`` with a text."""

from __future__ import annotations

import re
from typing import Final

from dynactor.storage.store import Damaged, Full, Retry, StoreError

_NO_SPACE: Final = "No space left on device"
_STALL: Final = "Write stall"
# Somebody still reads the engine that is to be opened again.
_IN_USE: Final = "lock hold by current process"
# Work in the background was stopped, because the log can't be written.
_STOPPED: Final = "Shutdown in progress"
_SAID_BEFORE: Final = "Writer has previous error"
# The engine says so of whatever it meets while it opens the files that the manifest names.
_MANIFEST_HINT: Final = re.compile(r"\s*The file \S*MANIFEST-[0-9]+ may be corrupted\.")
# In a text with one of these, a table file is damaged and not the manifest.
_OF_TABLE_FILES: Final = (".sst", "properties")
_UNREADABLE: Final = re.compile(r"(?:While pread|Corruption: block).*\.sst", re.DOTALL)
_WHITE: Final = re.compile(r"\s+")


def translate(error: Exception) -> StoreError:
    """The store's error for one of the engine. Whatever it can't do otherwise is damage."""
    text = _told(str(error))
    if _NO_SPACE in text:
        return Full(f"The disk is full: {text}")
    if _STALL in text or _IN_USE in text or _STOPPED in text:
        return Retry(text)
    return Damaged(text)


def _told(text: str) -> str:
    """The engine's text in one line, without a hint at a file that is whole."""
    if any(each in text for each in _OF_TABLE_FILES):
        text = _MANIFEST_HINT.sub("", text)
    return _WHITE.sub(" ", text).strip().removesuffix(".")


def is_of_reading(error: Exception) -> bool:
    """Whether a table file can't be read: met by a compaction, it ends all writing."""
    return _UNREADABLE.search(str(error)) is not None


def repeats_an_error(error: Exception) -> bool:
    """Whether the engine only says that it failed before, and not again why."""
    return _SAID_BEFORE in str(error)

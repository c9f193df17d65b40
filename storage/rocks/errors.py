"""Converts RocksDB's errors to the store's; ``rocksdict`` raises plain ``Exception``."""

from __future__ import annotations

import re
from typing import Final

from dynactor.storage.store import Damaged, Full, Retry, StoreError

_NO_SPACE: Final = "No space left on device"
_STALL: Final = "Write stall"
# Readers still use the engine that is to be reopened.
_IN_USE: Final = "lock hold by current process"
# Background work was stopped, because the log can't be written.
_STOPPED: Final = "Shutdown in progress"
_REPEATED: Final = "Writer has previous error"
# The engine adds this to any error from opening the files in the manifest.
_MANIFEST_HINT: Final = re.compile(r"\s*The file \S*MANIFEST-[0-9]+ may be corrupted\.")
# A message with one of these is about a damaged table file rather than the manifest.
_TABLE_FILE_MARKS: Final = (".sst", "properties")
_UNREADABLE: Final = re.compile(r"(?:While pread|Corruption: block).*\.sst", re.DOTALL)
_WHITE: Final = re.compile(r"\s+")


def translate(error: Exception) -> StoreError:
    """The store's error for an engine's error. Any unknown error counts as damage."""
    text = _one_line(str(error))
    if _NO_SPACE in text:
        return Full(f"The disk is full: {text}")
    if _STALL in text or _IN_USE in text or _STOPPED in text:
        return Retry(text)
    return Damaged(text)


def _one_line(text: str) -> str:
    """The engine's message in one line, without its hint at the manifest if that is intact."""
    if any(each in text for each in _TABLE_FILE_MARKS):
        text = _MANIFEST_HINT.sub("", text)
    return _WHITE.sub(" ", text).strip().removesuffix(".")


def is_unreadable_file(error: Exception) -> bool:
    """Whether the error says that a table file can't be read."""
    return _UNREADABLE.search(str(error)) is not None


def repeats_an_error(error: Exception) -> bool:
    """Whether the error says only that the engine failed before, without the reason."""
    return _REPEATED in str(error)

"""Recognizes causes of errors: another owner has taken over, or the store is unavailable."""

from __future__ import annotations

from dynactor.storage.store import Fenced, StoreError, Unavailable


def is_fenced(error: BaseException) -> bool:
    """Whether an error is ``Fenced``, was caused by it, or is a group that contains it."""
    return _is_caused_by(error, Fenced)


def is_unavailable(error: BaseException) -> bool:
    """Whether an error is ``Unavailable``, was caused by it, or is a group that contains it."""
    return _is_caused_by(error, Unavailable)


def _is_caused_by(error: BaseException, kind: type[StoreError]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_is_caused_by(each, kind) for each in error.exceptions)
    cause = error.__cause__
    return isinstance(error, kind) or (cause is not None and _is_caused_by(cause, kind))

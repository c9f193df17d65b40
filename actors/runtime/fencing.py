"""Recognizes causes of errors: another owner has taken over, or the store is unavailable."""

from __future__ import annotations

from dynactor.storage.store import Fenced, StoreError, TakenOver, Unavailable


def is_fenced(error: BaseException) -> bool:
    """Whether an error, one of its causes, or one in its group is of a new owner.

    The new owner has taken over one piece of work, or all data.
    """
    return _is_caused_by(error, (Fenced, TakenOver))


def is_unavailable(error: BaseException) -> bool:
    """Whether an error is ``Unavailable``, was caused by it, or is a group that contains it."""
    return _is_caused_by(error, (Unavailable,))


def _is_caused_by(error: BaseException, kinds: tuple[type[StoreError], ...]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_is_caused_by(each, kinds) for each in error.exceptions)
    cause = error.__cause__
    return isinstance(error, kinds) or (cause is not None and _is_caused_by(cause, kinds))

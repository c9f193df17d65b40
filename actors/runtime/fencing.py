"""Recognize work that a guard has refused because it has another owner now."""

from __future__ import annotations

from dynactor.storage.store import Fenced


def is_fenced(error: BaseException) -> bool:
    """Whether an error is ``Fenced``, was caused by it, or is a group that contains it."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_fenced, error.exceptions))
    cause = error.__cause__
    return isinstance(error, Fenced) or (cause is not None and is_fenced(cause))

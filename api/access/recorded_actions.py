"""Records the actions that callers ask for, so that policies can be suggested."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dynactor.api.access.ask import Ask
from dynactor.model.access.rules import UnknownFact
from dynactor.model.access.suggestion import RecordedAction, literal

RECORDED_SECONDS: Final = 3_600.0
# Pairs of action and resource for each caller. Callers choose the names of resources.
MOST_PAIRS: Final = 1_000
# A condition with more leading keys would restrict little.
_FEW_KEYS: Final = 10
_KEY_CHARACTERS: Final = 256
_ARN: Final = re.compile(r"arn:aws:dynamodb:[^:]*:[^:]*:")
_LEADING_KEYS: Final = "dynamodb:leadingkeys"


class _Pair(Struct):
    """An action on a resource; ``keys`` is None once there are many or a request has none."""

    last_seconds: float
    keys: set[str] | None


class RecordedActions:
    """The actions of each caller in the last hour, by the ARN of its user or role."""

    def __init__(self) -> None:
        # The pairs by action, resource, and whether the resource is a pattern.
        self._pairs: dict[str, dict[tuple[str, str, bool], _Pair]] = {}

    def note(self, principal_arn: str, ask: Ask, now_seconds: float | None = None) -> None:
        """Record an action; the time is the monotonic clock's unless it is given.

        Malformed ARNs are left out, because their operations refuse them.
        """
        if _ARN.match(ask.resource) is None and ask.resource != "*":
            return
        now = time.monotonic() if now_seconds is None else now_seconds
        pairs = self._pairs.setdefault(principal_arn, {})
        found = pairs.get((ask.action, ask.resource, False))
        if found is None:
            found = _place(pairs, ask, now)
        found.last_seconds = now
        if found.keys is not None:
            found.keys = _with_keys(found.keys, ask)

    def actions(
        self, principal_arn: str, now_seconds: float | None = None
    ) -> Sequence[RecordedAction]:
        """The actions of a caller in the last hour."""
        now = time.monotonic() if now_seconds is None else now_seconds
        pairs = self._pairs.get(principal_arn, {})
        _forget_old(pairs, now)
        return [
            RecordedAction(
                action, resource, None if pair.keys is None else frozenset(pair.keys), is_pattern
            )
            for (action, resource, is_pattern), pair in pairs.items()
        ]


def _place(pairs: dict[tuple[str, str, bool], _Pair], ask: Ask, now: float) -> _Pair:
    """The pair for a new resource: of its own, or of a pattern if there are many."""
    place = (ask.action, ask.resource, False)
    if len(pairs) >= MOST_PAIRS:
        _forget_old(pairs, now)
    if len(pairs) >= MOST_PAIRS:
        start, slash, _ = ask.resource.partition("/")
        place = (ask.action, f"{literal(start)}/*" if slash else "*", True)
        if place not in pairs and len(pairs) >= 2 * MOST_PAIRS:
            place = (ask.action, "*", True)
    # A new pair has no keys yet, so that its first request decides.
    return pairs.setdefault(place, _Pair(now, set()))


def _forget_old(pairs: dict[tuple[str, str, bool], _Pair], now: float) -> None:
    old = [place for place, pair in pairs.items() if now - pair.last_seconds > RECORDED_SECONDS]
    for place in old:
        del pairs[place]


def _with_keys(keys: set[str], ask: Ask) -> set[str] | None:
    """The keys with those of one more request; None if it has none, or if they are many."""
    try:
        values = ask.facts.values(_LEADING_KEYS)
    except UnknownFact:
        return None
    if not values or any(len(value) > _KEY_CHARACTERS for value in values):
        return None
    keys.update(values)
    return keys if len(keys) <= _FEW_KEYS else None

"""Records the actions that callers ask for, so that policies can be suggested."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dynactor.api.access.ask import Ask
from dynactor.model.access.decision import RESOURCE_CHARACTERS
from dynactor.model.access.rules import UnknownFact
from dynactor.model.access.suggestion import RecordedAction, literal

RECORDED_SECONDS: Final = 3_600.0
# Pairs of action and resource for each caller. Callers choose the names of resources.
MOST_PAIRS: Final = 1_000
# The shortest time between two searches for old pairs, which take a while.
_FORGET_SECONDS: Final = 60.0
# A condition with more leading keys would restrict little.
_FEW_KEYS: Final = 10
_KEY_CHARACTERS: Final = 256
_ARN: Final = re.compile(r"arn:aws:dynamodb:[^:]*:[^:]*:")
_LEADING_KEYS: Final = "dynamodb:leadingkeys"


class _Pair(Struct):
    """An action on a resource; ``keys`` is None once there are many or a request has none."""

    last_seconds: float
    keys: set[str] | None


class _Pairs:
    """The pairs of one caller, by action, resource, and whether the resource is a pattern."""

    def __init__(self, now: float) -> None:
        self.found: dict[tuple[str, str, bool], _Pair] = {}
        self._forgot_seconds = now

    def add(self, ask: Ask, now: float) -> _Pair:
        """The pair for a new resource: of its own, or of a pattern if there are many."""
        place = (ask.action, ask.resource, False)
        if len(self.found) >= MOST_PAIRS and now - self._forgot_seconds > _FORGET_SECONDS:
            self.forget_old(now)
        if len(self.found) >= MOST_PAIRS:
            start, slash, _ = ask.resource.partition("/")
            place = (ask.action, f"{literal(start)}/*" if slash else "*", True)
            if place not in self.found and len(self.found) >= 2 * MOST_PAIRS:
                place = (ask.action, "*", True)
        # A new pair has no keys yet, so that its first request decides.
        return self.found.setdefault(place, _Pair(now, set()))

    def forget_old(self, now: float) -> None:
        """Forget the pairs that were not used for an hour."""
        self._forgot_seconds = now
        self.found = {
            place: pair
            for place, pair in self.found.items()
            if now - pair.last_seconds <= RECORDED_SECONDS
        }


class RecordedActions:
    """The actions of each caller in the last hour, by the ARN of its user or role."""

    def __init__(self) -> None:
        self._pairs: dict[str, _Pairs] = {}

    def note(self, principal_arn: str, ask: Ask, now_seconds: float | None = None) -> None:
        """Record an action; the time is the monotonic clock's unless it is given.

        Malformed and too long ARNs are left out, because their operations refuse them.
        """
        if len(ask.resource) > RESOURCE_CHARACTERS:
            return
        if _ARN.match(ask.resource) is None and ask.resource != "*":
            return
        now = time.monotonic() if now_seconds is None else now_seconds
        pairs = self._pairs.get(principal_arn)
        if pairs is None:
            pairs = self._pairs[principal_arn] = _Pairs(now)
        found = pairs.found.get((ask.action, ask.resource, False)) or pairs.add(ask, now)
        found.last_seconds = now
        if found.keys is not None:
            found.keys = _with_keys(found.keys, ask)

    def actions(
        self, principal_arn: str, now_seconds: float | None = None
    ) -> Sequence[RecordedAction]:
        """The actions of a caller in the last hour."""
        now = time.monotonic() if now_seconds is None else now_seconds
        pairs = self._pairs.get(principal_arn)
        if pairs is None:
            return []
        pairs.forget_old(now)
        return [
            RecordedAction(
                action, resource, None if pair.keys is None else frozenset(pair.keys), is_pattern
            )
            for (action, resource, is_pattern), pair in pairs.found.items()
        ]


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

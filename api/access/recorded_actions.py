"""Records the actions that callers ask for, so that policies can be suggested."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from dynactor.api.access.ask import Ask
from dynactor.api.access.bucket_asks import LIST, PREFIX
from dynactor.model.access.decision import RESOURCE_CHARACTERS
from dynactor.model.access.rules import UnknownFact
from dynactor.model.access.suggestion import RecordedAction
from dynactor.model.access.templates import literal

RECORDED_SECONDS: Final = 3_600.0
# Pairs of action and resource for each caller. Callers choose the names of resources.
MOST_PAIRS: Final = 1_000
# The shortest time between two searches for old pairs, which take a while.
_FORGET_SECONDS: Final = 60.0
# A condition with more leading keys would restrict little.
_FEW_KEYS: Final = 10
_KEY_CHARACTERS: Final = 256
_ARN: Final = re.compile(r"arn:aws:(?:dynamodb:[^:]*:[^:]*|s3::):")
_LEADING_KEYS: Final = "dynamodb:leadingkeys"


class _ActionPair(Struct):
    """An action on a resource; ``keys`` is None once there are many or a request has none.

    The keys of a list of a bucket are the prefixes.
    """

    last_seconds: float
    keys: set[str] | None


# An action, a resource, and whether the resource is a pattern.
_Place: TypeAlias = tuple[str, str, bool]


class _Pairs:
    """The pairs of one caller, by their places."""

    def __init__(self, now: float) -> None:
        self.found: dict[_Place, _ActionPair] = {}
        self._forgot_seconds = now

    def add(self, place: _Place, now: float) -> _ActionPair:
        """The pair for a new resource: of its own, or of a pattern if there are many."""
        if len(self.found) >= MOST_PAIRS and now - self._forgot_seconds > _FORGET_SECONDS:
            self.forget_old(now)
        if len(self.found) >= MOST_PAIRS:
            action, resource, _ = place
            start, slash, _ = resource.partition("/")
            place = (action, f"{literal(start)}/*" if slash else "*", True)
            if place not in self.found and len(self.found) >= 2 * MOST_PAIRS:
                place = (action, "*", True)
        # A new pair has no keys yet, so that its first request decides.
        return self.found.setdefault(place, _ActionPair(now, set()))

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

    def note(
        self,
        principal_arn: str,
        ask: Ask,
        now_seconds: float | None = None,
        *,
        is_start: bool = False,
    ) -> None:
        """Record an action; the time is the monotonic clock's unless it is given.

        ``is_start``: the action is on all resources whose ARNs begin with that of ``ask``.
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
        resource = f"{literal(ask.resource)}*" if is_start else ask.resource
        place = (ask.action, resource, is_start)
        found = pairs.found.get(place) or pairs.add(place, now)
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
        return [_recorded(*place, pair.keys) for place, pair in pairs.found.items()]


def _recorded(
    action: str, resource: str, is_pattern: bool, keys: set[str] | None
) -> RecordedAction:
    found = None if keys is None else frozenset(keys)
    if action == LIST:
        return RecordedAction(action, resource, is_pattern=is_pattern, prefixes=found)
    return RecordedAction(action, resource, found, is_pattern)


def _with_keys(keys: set[str], ask: Ask) -> set[str] | None:
    """The keys with those of one more request; None if it has none, or if they are many."""
    try:
        values = ask.facts.values(PREFIX if ask.action == LIST else _LEADING_KEYS)
    except UnknownFact:
        return None
    if not values or any(len(value) > _KEY_CHARACTERS for value in values):
        return None
    keys.update(values)
    return keys if len(keys) <= _FEW_KEYS else None

"""Logs actions that policies would have denied, while policies are only observed."""

from __future__ import annotations

import time
from typing import Final

import structlog

from dynactor.model.access.decision import RESOURCE_CHARACTERS

_SECONDS: Final = 60.0
# A longer message has a name of a resource that no resource can have.
MESSAGE_CHARACTERS: Final = 2 * RESOURCE_CHARACTERS
# Combinations that are remembered. Clients choose the names of resources.
_MOST_COMBINATIONS: Final = 10_000

_log = structlog.get_logger(__name__)


class ObservedDenials:
    """Logs each combination of access key, action and resource at most once a minute."""

    def __init__(self) -> None:
        # When each combination was last logged.
        self._logged: dict[tuple[str, str, str], float] = {}

    def note(
        self,
        access_key_id: str,
        action: str,
        resource: str,
        message: str,
        now_seconds: float | None = None,
    ) -> None:
        """Log a denied action; the time is the monotonic clock's unless it is given."""
        now = time.monotonic() if now_seconds is None else now_seconds
        resource = resource[:RESOURCE_CHARACTERS]
        combination = access_key_id, action, resource
        last = self._logged.get(combination)
        if last is not None and now - last < _SECONDS:
            return
        if len(self._logged) >= _MOST_COMBINATIONS:
            self._logged.clear()
        self._logged[combination] = now
        _log.warning(
            "action_not_allowed",
            access_key_id=access_key_id,
            action=action,
            resource=resource,
            message=message[:MESSAGE_CHARACTERS],
        )

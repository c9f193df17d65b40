"""The answers of the admin listener's paths for policies."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dynactor.model.access.suggestion import RecordedAction

ACCESS_PATH: Final = "/access"
ACTIONS_PATH: Final = "/access/actions"


class RecordedAnswer(Struct, frozen=True):
    """The actions of a user or role in the last hour."""

    actions: list[RecordedAction]

"""The answers of the admin listener's paths for policies."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.access.suggestion import RecordedAction

ACCESS_PATH: Final = "/access"
ACTIONS_PATH: Final = "/access/actions"

# none: the server has no policies.
AccessMode: TypeAlias = Literal["none", "enforce", "observe"]


class AccessWarning(Struct, frozen=True):
    """A statement that allows a user or role more than its author may expect."""

    principal: str
    text: str


class AccessAnswer(Struct, frozen=True):
    """Whether policies are enforced, and warnings about their statements."""

    mode: AccessMode = "none"
    warnings: tuple[AccessWarning, ...] = ()


class RecordedAnswer(Struct, frozen=True):
    """The actions of a user or role in the last hour."""

    actions: list[RecordedAction]

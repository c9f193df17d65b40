"""Refuses changes of a table that follow too soon on another one, as the service does.

The times are in memory: a restart ends all cooldowns. Only ``TableChanges`` uses them.

Source: answers of the service, October 2026. Comments mark what is inferred.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from dynactor.actors.runtime.clock import Clock
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import (
    LimitExceededException,
    ResourceInUseException,
    ThrottlingException,
)
from dynactor.model.tables.table_edits import TableEdit

_Kind: TypeAlias = Literal["protection", "policy", "tags"]

_MILLISECONDS: Final = 1_000
_COOLDOWN_SECONDS: Final = 15.0
_TAGS_SECONDS: Final = 1.5
# Inferred: the service applies a policy within a few seconds.
_PENDING_POLICY_SECONDS: Final = 3.0


class Cooldowns:
    """The times of the latest changes of tables, by table and kind."""

    def __init__(self, clock: Clock, *, is_on: bool) -> None:
        self._clock = clock
        self._is_on = is_on
        self._changed_at: dict[tuple[int, _Kind], float] = {}

    def check_edit(self, definition: TableDefinition, edit: TableEdit) -> None:
        """Refuse a change that follows too soon.

        Raises ``ThrottlingException``, ``ResourceInUseException`` or ``LimitExceededException``.
        """
        for kind in _kinds(edit):
            seconds = self._since(definition, kind)
            if seconds is None:
                continue
            if kind == "policy":
                self.check_deletion(definition)
            if kind == "tags":
                raise LimitExceededException(f"Table tags are being updated: {definition.name}")
            # The words of a policy, and the end of both, are inferred.
            subject = "Deletion protection setting" if kind == "protection" else "Resource policy"
            raise ThrottlingException(
                f"{subject} for table {definition.name} modified within the previous "
                f"{_COOLDOWN_SECONDS * _MILLISECONDS:.0f} milliseconds. Please try again after "
                f"{(_COOLDOWN_SECONDS - seconds) * _MILLISECONDS:.0f} milliseconds"
            )

    def check_deletion(self, definition: TableDefinition) -> None:
        """Refuse to delete a table whose policy just changed; raises ``ResourceInUseException``."""
        seconds = self._since(definition, "policy")
        if seconds is not None and seconds < _PENDING_POLICY_SECONDS:
            raise ResourceInUseException(
                "Attempt to change a resource which is still in use: "
                f"Table: {definition.name} has a pending resource-based policy update"
            )

    def note(self, definition: TableDefinition, edit: TableEdit) -> None:
        """Begin the cooldowns of a change that is stored."""
        if not self._is_on:
            return
        now = self._clock.now_epoch_seconds()
        self._changed_at = {
            key: at for key, at in self._changed_at.items() if now - at < _seconds(key[1])
        }
        for kind in _kinds(edit):
            self._changed_at[definition.table_id, kind] = now

    def _since(self, definition: TableDefinition, kind: _Kind) -> float | None:
        """The seconds since the last change of this kind; None if its cooldown is over."""
        at = self._changed_at.get((definition.table_id, kind))
        if at is None:
            return None
        seconds = self._clock.now_epoch_seconds() - at
        return seconds if seconds < _seconds(kind) else None


def _seconds(kind: _Kind) -> float:
    return _TAGS_SECONDS if kind == "tags" else _COOLDOWN_SECONDS


def _kinds(edit: TableEdit) -> tuple[_Kind, ...]:
    """The kinds of changes with a cooldown; an UpdateTable or a change of tags has one."""
    if edit.deletion_protection is not None:
        return ("protection",)
    if edit.policy is not None:
        return ("policy",)
    if edit.tags_to_add is not None or edit.tag_keys_to_remove is not None:
        return ("tags",)
    return ()

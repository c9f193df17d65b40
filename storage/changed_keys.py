"""Tracks which rows changed after a durable state of the store.

For every other row, the engine's latest value equals the value in that state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dynactor.storage.store import Group


class ChangedKeys:
    """The keys of commits between one state and the next, linked to the keys of later commits.

    The states form a linked list from old to new, so the garbage collector frees a state's keys
    once nothing reads that state or an older one.
    """

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.ranges: list[tuple[bytes, bytes]] = []
        self.later: ChangedKeys | None = None

    def begin_next(self) -> ChangedKeys:
        """Begin the next state, which is the store's current state; return its changed keys."""
        assert self.later is None
        self.later = ChangedKeys()
        return self.later

    def note(self, groups: Sequence[Group]) -> None:
        """Record keys that are about to be written. Only valid on the last state."""
        assert self.later is None
        keys = self.keys
        for group in groups:
            keys.add(group.head_key)
            keys.update([key for key, _ in group.puts])
            keys.update(group.deletes)
            self.ranges += group.ranges

    def __contains__(self, key: bytes) -> bool:
        each: ChangedKeys | None = self
        while each is not None:
            if key in each.keys:
                return True
            for start, end in each.ranges:
                if start <= key < end:
                    return True
            each = each.later
        return False


class _AllKeys(ChangedKeys):
    """Treats every row as changed, and records nothing."""

    def note(self, groups: Sequence[Group]) -> None:
        pass

    def __contains__(self, key: bytes) -> bool:
        return True


# Counts every key as changed. Used for long-lived states, because recording their later changes
# would use much memory, and for an engine in memory, whose reads never wait for a disk.
ALL_KEYS: Final[ChangedKeys] = _AllKeys()

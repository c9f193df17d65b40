"""Which rows are no longer what one state of the store shows: those accepted after it.

Of any other row the engine's latest value is the state's own, wherever it is read, and whenever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dynactor.storage.store import Group


class ChangedKeys:
    """What was accepted after a state and before the next one, and what after that.

    A state keeps its own; those of the states after it hang on behind. Nothing is kept of what
    came before a state that nobody reads any more.
    """

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.ranges: list[tuple[bytes, bytes]] = []
        self.later: ChangedKeys | None = None

    def begin_next(self) -> ChangedKeys:
        """The keys changed after the next state, which is the present one."""
        assert self.later is None
        self.later = ChangedKeys()
        return self.later

    def note(self, groups: Sequence[Group]) -> None:
        """These are about to be written. Only on the last of the states."""
        assert self.later is None
        keys = self.keys
        for group in groups:
            keys.add(group.head_key)
            keys.update([key for key, _ in group.puts])
            keys.update(group.deletes)
            self.ranges += group.range_deletes

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
    """As if every row were changed."""

    def __contains__(self, key: bytes) -> bool:
        return True


# For a state that is kept for long: it needs no memory for what is accepted meanwhile.
ALL_KEYS: Final[ChangedKeys] = _AllKeys()

"""The passing states of tables and indexes that only take their time, and which of them go on.

Each has a number, which is in the message that ends it: a message that was sent for one state, and
comes when that is over, ends no other.
"""

from __future__ import annotations

from itertools import count

from dynactor.model.tables.table import TABLE_INDEX_ID


class Transitions:
    """Invariant: of each table (index id 0) or index one state goes on at most."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._going_on: dict[tuple[int, int], tuple[str, int]] = {}

    def begin(self, state: str, table_id: int, index_id: int = TABLE_INDEX_ID) -> int | None:
        """The number of a state that has begun; None if it is known, and its end will come."""
        known = self._going_on.get((table_id, index_id))
        if known is not None and known[0] == state:
            return None
        number = next(self._numbers)
        self._going_on[table_id, index_id] = state, number
        return number

    def goes_on(self, number: int, table_id: int, index_id: int = TABLE_INDEX_ID) -> bool:
        """Whether the state with this number is not over."""
        known = self._going_on.get((table_id, index_id))
        return known is not None and known[1] == number

    def end(self, table_id: int, index_id: int = TABLE_INDEX_ID) -> None:
        """The state that goes on is over, and so is what was done about it."""
        self._going_on.pop((table_id, index_id), None)

    def forget(self) -> None:
        """All states begin anew."""
        self._going_on.clear()

"""Destinations outside of the server that take the changes of several logs together, in rounds.

A ``RoundSink`` makes messages, without I/O. A ``RoundSender`` delivers a round of them and alone
knows how: it opens connections, tries again and waits. ``RoundFollower`` reads the logs and the
table, and moves the checkpoints behind a delivered round.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from dynactor.actors.derived.checkpoint import Checkpoint
from dynactor.actors.derived.sink import Contract
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord

M = TypeVar("M")


class Round(Generic[M]):
    """Messages by partition of the destination, and where the logs are behind them.

    ``messages`` are those that are not acknowledged. ``items`` of the ``records`` are items of a
    snapshot, the others are changes.
    """

    def __init__(self) -> None:
        self.records = 0
        self.items = 0
        self.size_bytes = 0
        self.positions: dict[int, Checkpoint] = {}
        self.messages: defaultdict[int, list[M]] = defaultdict(list)


class RoundSink(ABC, Generic[M]):
    """Makes messages of changes, and of the items of a snapshot.

    A snapshot begins with a gap, which makes consumers forget what they know of the table.
    """

    contract: Contract

    @abstractmethod
    def add_change(self, current: Round[M], record: ChangeRecord) -> None:
        """Add the messages for a change."""

    @abstractmethod
    def add_item(self, current: Round[M], item: StoredItem, taken_us: int) -> None:
        """Add the message for an item of a snapshot that was taken at ``taken_us``."""

    @abstractmethod
    def add_gap(self, current: Round[M], now_us: int) -> None:
        """Tell each partition of the destination that changes are missing."""


class Opened(NamedTuple):
    """What a sender found at the destination.

    ``counters`` are those that transactions reached, by log. ``needs_snapshot``: the destination
    tells of something else than this table from its first change on.
    """

    counters: Mapping[int, int]
    needs_snapshot: bool


class RoundSender(Protocol[M]):
    """The way to a destination.

    A method that fails says so, releases the connection and waits a while before it returns. It
    is called again then.
    """

    @property
    def is_open(self) -> bool:
        """Whether rounds can be delivered."""
        ...

    @property
    def is_answered(self) -> bool:
        """Whether the destination answers, as far as is known."""
        ...

    @property
    def round_bytes(self) -> int:
        """The most bytes of messages that a round may have."""
        ...

    async def open(
        self, counters: Mapping[int, int], stopped: asyncio.Future[None]
    ) -> Opened | None:
        """Connect; None if that failed. ``counters`` are those of the logs' positions."""
        ...

    async def deliver(self, current: Round[M], stopped: asyncio.Future[None]) -> bool:
        """Wait until all of a round is acknowledged.

        Returns:
            False if that failed: the round holds what is left to be sent, perhaps changed.
        """
        ...

    async def close(self) -> None:
        """Release the connection."""
        ...

"""Destinations outside of the server that get the changes of several logs together, in rounds.

A ``RoundSink`` makes messages, without I/O. A ``RoundSender`` delivers rounds: it opens
connections, retries and waits. ``RoundFollower`` reads the logs and the table, and moves the
checkpoints after a delivered round.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.sink import Contract
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord

M = TypeVar("M")


class Round(Generic[M]):
    """Messages by partition of the destination, and the positions of the logs after them.

    ``messages`` are not acknowledged yet. ``records`` is the number of changes and snapshot items,
    ``items`` of snapshot items alone.
    """

    def __init__(self) -> None:
        self.records = 0
        self.items = 0
        self.size_bytes = 0
        self.positions: dict[int, Checkpoint] = {}
        self.messages: defaultdict[int, list[M]] = defaultdict(list)


class RoundSink(ABC, Generic[M]):
    """Makes messages of changes, and of the items of a snapshot.

    A snapshot starts with a gap, after which consumers forget everything they know of the table.
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
        """Add a message about missing changes for each partition of the destination."""


class Opened(NamedTuple):
    """The state of a destination that was opened.

    ``counters`` are the positions of committed transactions, by log. ``needs_snapshot``: the
    destination's content is not the complete history of this table.
    """

    counters: Mapping[int, int]
    needs_snapshot: bool


class RoundSender(Protocol[M]):
    """Delivers rounds to a destination.

    A method that fails releases the connection, waits a while, and returns None or False. The
    caller then calls the method again.
    """

    @property
    def is_open(self) -> bool:
        """Whether rounds can be delivered."""

    @property
    def is_answered(self) -> bool:
        """Whether the destination answered the last request, and is not silent now."""

    @property
    def round_bytes(self) -> int:
        """Maximum bytes of messages in a round."""

    async def open(
        self, counters: Mapping[int, int], stopped: asyncio.Future[None]
    ) -> Opened | None:
        """Connect; None if that failed. ``counters`` are the counters of the logs' positions."""

    async def deliver(self, current: Round[M], stopped: asyncio.Future[None]) -> bool:
        """Wait until all of a round is acknowledged; False if the delivery failed.

        After a failure the round has the unacknowledged messages, perhaps without images.
        """

    async def close(self) -> None:
        """Release the connection."""

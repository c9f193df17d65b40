"""The parameters of a replay, and its progress."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

ReplayOrigin: TypeAlias = Literal["beginning", "snapshot", "sequence-number", "time"]
ReplayState: TypeAlias = Literal[
    "STARTING", "SNAPSHOT", "CHANGES", "FOLLOWING", "DONE", "CANCELLED", "FAILED"
]

ENDED: Final = ("DONE", "CANCELLED", "FAILED")


class ReplayStart(Struct, frozen=True):
    """The first change to publish again. ``number``: packed, or microseconds of domain time."""

    origin: ReplayOrigin
    number: int = 0


class ReplayProgress(Struct, frozen=True):
    """A replay at one moment.

    ``problem`` is the reason why the replay can't continue, or why it ended. The totals change
    while the table gets writes. ``missing_changes`` are in no log, because they were made while
    the table had no followers.
    """

    replay_id: str
    table_name: str
    topic: str
    start: ReplayStart
    follows: bool
    state: ReplayState
    problem: str | None = None
    # Whether nothing is left out: the replay publishes all items first, or all changes since the
    # table's creation.
    is_whole: bool = True
    items: int = 0
    items_total: int = 0
    changes: int = 0
    changes_total: int = 0
    missing_changes: int = 0
    # Number of snapshots begun: an interrupted snapshot starts again.
    snapshots: int = 0
    omitted_images: int = 0

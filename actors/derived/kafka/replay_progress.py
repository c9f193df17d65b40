"""What a replay was asked for, and how far it has come."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

ReplayOrigin: TypeAlias = Literal["beginning", "snapshot", "sequence-number", "time"]
ReplayState: TypeAlias = Literal[
    "STARTING", "SNAPSHOT", "CHANGES", "FOLLOWING", "DONE", "CANCELLED", "FAILED"
]

ENDED: Final = ("DONE", "CANCELLED", "FAILED")


class ReplayStart(Struct, frozen=True):
    """From where on changes are published again.

    ``number`` is a packed sequence number, or a time in microseconds of domain time.
    """

    origin: ReplayOrigin
    number: int = 0


class ReplayProgress(Struct, frozen=True):
    """A replay at one moment.

    ``problem`` says in words what keeps it from going on, or why it ended. Of a table that
    others write to, totals are those known by now. ``missing_changes`` are in no log: they were
    made while nobody followed the table.
    """

    replay_id: str
    table_name: str
    topic: str
    start: ReplayStart
    follows: bool
    state: ReplayState
    problem: str | None = None
    # Every change since the table was made is published, or every item first.
    is_whole: bool = True
    items: int = 0
    items_total: int = 0
    changes: int = 0
    changes_total: int = 0
    missing_changes: int = 0
    # More than one where the broker was away for so long that a snapshot was begun anew.
    snapshots: int = 0
    omitted_images: int = 0

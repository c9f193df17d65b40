"""The requests and answers of the admin listener's paths for replays."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from dynactor.actors.derived.kafka.replay_progress import ReplayState

REPLAYS_PATH: Final = "/replays"


class ReplayRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /replays``.

    ``from`` is ``beginning``, ``snapshot``, a sequence number of 21 digits, a time (ISO 8601 or
    seconds since 1970), or an age (such as 90s, 15m, 1h or 2d).
    """

    table: str
    to_topic: str
    start: str = field(name="from")
    follow: bool = False


class ReplayAnswer(Struct, frozen=True):
    """The state of a replay; see ``ReplayProgress``."""

    id: str
    table: str
    to_topic: str
    start: str = field(name="from")
    follow: bool
    state: ReplayState
    problem: str | None
    whole: bool
    items: int
    items_total: int
    changes: int
    changes_total: int
    missing_changes: int
    snapshots: int
    omitted_images: int

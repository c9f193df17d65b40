"""The requests and answers of the admin listener's paths for the virtual clock."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

CLOCK_PATH: Final = "/clock"
STEP_PATH: Final = "/clock/step"


class ClockAnswer(Struct, frozen=True):
    """The clock's state: the time in epoch seconds and in ISO 8601, and the speed."""

    now: float
    now_iso: str
    speed: float


class ClockSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``PUT /clock``; ``now`` is in epoch seconds or ISO 8601."""

    now: float | str | None = None
    speed: float | None = None


class ClockStep(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of ``POST /clock/step``."""

    seconds: float

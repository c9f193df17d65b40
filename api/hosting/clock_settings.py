"""The settings of the clock of the stored data."""

from __future__ import annotations

import time
from typing import Annotated

from msgspec import Struct

from dynactor.actors.runtime.clock import MAX_SPEED, Clock, SystemClock, VirtualClock
from dynactor.api.admin_api.times import parse_time
from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.option import Option, OptionGroup


def _start(text: str | None) -> str | None:
    if text is not None:
        try:
            _stopped_clock(text)
        except ValueError as error:
            raise ConfigurationError(f"--virtual-clock: {error}") from None
    return text


class ClockSettings(Struct, frozen=True):
    """The machine's clock, or a virtual clock."""

    start: Annotated[
        str | None, Option("--virtual-clock", OptionGroup.TEST_TIMES, _start, place=1)
    ] = None
    """Run on a virtual clock that starts at this time: ISO 8601, epoch seconds, or now."""

    speed: Annotated[
        float, Option("--clock-speed", OptionGroup.TEST_TIMES, at_most=MAX_SPEED, place=1)
    ] = 0
    """Speed of the virtual clock: 1 is real time, 0 stops the clock."""

    def new_clock(self) -> Clock:
        """Make the clock of the stored data."""
        if self.start is None:
            return SystemClock()
        clock = _stopped_clock(self.start)
        clock.set_speed(self.speed)
        return clock


def _stopped_clock(start: str) -> VirtualClock:
    return VirtualClock(time.time() if start == "now" else parse_time(start))

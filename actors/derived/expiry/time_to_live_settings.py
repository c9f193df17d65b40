"""The settings of time to live."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from dynactor.model.limits import TIME_TO_LIVE_CHANGE_SECONDS
from dynactor.model.option import Option, OptionGroup


class TimeToLiveSettings(Struct, frozen=True):
    """The settings of time to live. All times are domain time."""

    delay_seconds: Annotated[float, Option("--ttl-delay-seconds", OptionGroup.LIMITS)] = 1.0
    """Lowest number of seconds between the expiry of an item and its deletion."""

    deletes_per_second: Annotated[
        float, Option("--ttl-deletes-per-second", OptionGroup.LIMITS, above=0)
    ] = 4_000.0
    """Highest number of expired items to delete in a second, over all tables."""

    change_interval_seconds: Annotated[
        float, Option("--ttl-change-interval-seconds", OptionGroup.TEST_TIMES, place=2)
    ] = TIME_TO_LIVE_CHANGE_SECONDS
    """Lowest number of seconds between two changes of a table's time to live."""

    transition_seconds: Annotated[
        float, Option("--ttl-transition-seconds", OptionGroup.TEST_TIMES, place=2)
    ] = 0
    """Lowest number of seconds that time to live stays ENABLING or DISABLING. 0: neither state is
    visible."""

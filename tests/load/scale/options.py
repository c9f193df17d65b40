"""The options of the scale benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Group, Parameter
from cyclopts.types import NonNegativeFloat, PositiveFloat, PositiveInt

Part = Literal["gets", "memory"]

_GETS: Final = Group("Gets of small and large tables", sort_key=1)
_MEMORY: Final = Group("More data than memory", sort_key=2)

_several = Parameter(consume_multiple=True, negative=())


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScaleOptions:
    """Amount of data, duration, directory."""

    parts: Annotated[tuple[Part, ...], _several] = ("gets", "memory")
    """gets: start, memory and gets by the number of items. memory: gets under a memory limit."""

    directory: Path | None = None
    """Directory for filled tables, which later runs reuse. Default: none, tables are filled again.
    10 million items of 1 KB need 6 GB."""

    seconds: PositiveFloat = 3.0
    """Seconds to measure in each round."""

    warm_up: NonNegativeFloat = 1.0
    """Seconds of warm-up before each measurement."""

    seed: int = 1
    """Seed of the random keys."""

    serve: Annotated[tuple[str, ...], _several] = ()
    """More options for the server."""

    items: Annotated[tuple[PositiveInt, ...], Parameter(group=_GETS), _several] = (
        10_000,
        1_000_000,
        10_000_000,
    )
    """Items per table; ratios are relative to the first table."""

    item_size: Annotated[PositiveInt, Parameter(group=_GETS)] = 300
    """Bytes per item."""

    connections: Annotated[tuple[PositiveInt, ...], Parameter(group=_GETS), _several] = (
        *(1, 16),
        *(64, 256),
    )
    """Numbers of concurrent connections."""

    rounds: Annotated[PositiveInt, Parameter(group=_GETS)] = 5
    """Rounds of each size, alternating between servers."""

    touch_seconds: Annotated[NonNegativeFloat, Parameter(group=_GETS)] = 20.0
    """Seconds of gets before all rounds, to fill the caches."""

    limited_items: Annotated[PositiveInt, Parameter(group=_MEMORY)] = 10_000_000
    """Items of the table that exceeds memory."""

    limited_item_size: Annotated[PositiveInt, Parameter(group=_MEMORY)] = 1_024
    """Bytes per item."""

    limit_mib: Annotated[PositiveInt, Parameter(group=_MEMORY)] = 1_024
    """Memory limit of the server in MiB, including its part of the page cache."""

    hot_items: Annotated[PositiveInt, Parameter(group=_MEMORY)] = 10_000
    """Number of hot items, which are read all the time."""

    hot_connections: Annotated[PositiveInt, Parameter(group=_MEMORY)] = 4
    """Connections that read hot items."""

    cold_connections: Annotated[tuple[PositiveInt, ...], Parameter(group=_MEMORY), _several] = (
        *(1, 4),
        *(16, 64),
    )
    """Numbers of connections that read any item at the same time."""

    cold_seconds: Annotated[PositiveFloat, Parameter(group=_MEMORY)] = 15.0
    """Seconds of measurement for each number of connections."""

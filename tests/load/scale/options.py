"""What is measured, with how much data."""

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
    """How much, how long, where."""

    parts: Annotated[tuple[Part, ...], _several] = ("gets", "memory")
    """gets: start, memory and gets by the number of items. memory: gets under a memory limit."""

    directory: Path | None = None
    """Where filled tables are kept, and found by the next run. Default: nowhere, they are filled
    anew; 10 million items of 1 KB need 6 GB."""

    seconds: PositiveFloat = 3.0
    """That count, of each round."""

    warm_up: NonNegativeFloat = 1.0
    """Seconds before that in each round."""

    seed: int = 1
    """Draws keys."""

    serve: Annotated[tuple[str, ...], _several] = ()
    """More options for the server."""

    items: Annotated[tuple[PositiveInt, ...], Parameter(group=_GETS), _several] = (
        10_000,
        1_000_000,
        10_000_000,
    )
    """Of each table; ratios are to the first one."""

    item_size: Annotated[PositiveInt, Parameter(group=_GETS)] = 300
    """Bytes."""

    connections: Annotated[tuple[PositiveInt, ...], Parameter(group=_GETS), _several] = (
        *(1, 16),
        *(64, 256),
    )
    """At once."""

    rounds: Annotated[PositiveInt, Parameter(group=_GETS)] = 5
    """Of each, from server to server."""

    touch_seconds: Annotated[NonNegativeFloat, Parameter(group=_GETS)] = 20.0
    """Gets before all rounds, that memory holds what it will hold."""

    limited_items: Annotated[PositiveInt, Parameter(group=_MEMORY)] = 10_000_000
    """Of the table that does not fit."""

    limited_item_size: Annotated[PositiveInt, Parameter(group=_MEMORY)] = 1_024
    """Bytes."""

    limit_mib: Annotated[PositiveInt, Parameter(group=_MEMORY)] = 1_024
    """What the server may use, with its part of the system's cache."""

    hot_items: Annotated[PositiveInt, Parameter(group=_MEMORY)] = 10_000
    """Items that are asked for all the time."""

    hot_connections: Annotated[PositiveInt, Parameter(group=_MEMORY)] = 4
    """That ask for them."""

    cold_connections: Annotated[tuple[PositiveInt, ...], Parameter(group=_MEMORY), _several] = (
        *(1, 4),
        *(16, 64),
    )
    """That ask for any item meanwhile."""

    cold_seconds: Annotated[PositiveFloat, Parameter(group=_MEMORY)] = 15.0
    """With each number of them."""

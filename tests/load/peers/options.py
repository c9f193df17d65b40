"""The options of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.types import NonNegativeFloat, PositiveFloat, PositiveInt

from tests.load.peers.launch import LoadedName

_SERVERS: Final[tuple[LoadedName, ...]] = (
    "dynactor",
    "dynalite",
    "dynalite-memory",
    "local",
    "local-memory",
)
_LINES: Final = (
    "get",
    "put",
    "update",
    "conditional-put",
    "query:1",
    "query:10",
    "query:100",
    "lsi-query:10",
    "gsi-query:10",
    "batch-write",
    "batch-get",
    "transact-write",
    "transact-get",
    "ycsb-a",
)

_several = Parameter(consume_multiple=True, negative=())


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PeerOptions:
    """The servers, requests and number of rounds."""

    servers: Annotated[tuple[LoadedName, ...], _several] = _SERVERS
    """Servers; ratios are relative to the first. local is DynamoDB Local; -memory is in memory."""

    lines: Annotated[tuple[str, ...], _several] = _LINES
    """Workloads; `query:100` reads 100 items. A dash marks an unsupported one."""

    connections: Annotated[tuple[PositiveInt, ...], _several] = (1, 16, 64)
    """Numbers of connections for each line."""

    rounds: PositiveInt = 5
    """Rounds of each line, alternating between servers."""

    seconds: PositiveFloat = 3.0
    """Seconds to measure in each round."""

    warm_up: NonNegativeFloat = 1.0
    """Seconds of warm-up before each measurement."""

    workers: PositiveInt = 1
    """Processes that send requests."""

    keys: PositiveInt = 10_000
    """Items of each table."""

    item_size: str = "300"
    """Bytes per item, as in the command ``run``."""

    local_index: bool = True
    """Give the tables a local index, which each write updates, too."""

    global_index: bool = False
    """Give the table of all lines a global index; gsi-query has a table with one."""

    seed: int = 1
    """Seed of the random choices, as in the command ``run``."""

    directory: Path | None = None
    """Directory on the disk to measure. Default: a temporary one."""

    output: Path | None = None
    """Directory for the results of all rounds as JSON, which `compare` reads."""

    plot: Path | None = None
    """Also draw the results: a .png, .svg or .html file."""

    serve: Annotated[tuple[str, ...], _several] = ()
    """More options for this server."""

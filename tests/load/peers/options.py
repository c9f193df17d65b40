"""What is measured beside what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.types import NonNegativeFloat, PositiveFloat, PositiveInt

from tests.load.peers.launch import ServerName

_SERVERS: Final[tuple[ServerName, ...]] = (
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
    """Which servers, which requests, how many rounds."""

    servers: Annotated[tuple[ServerName, ...], _several] = _SERVERS
    """The first one is what ratios are of. local is DynamoDB Local; without -memory on disk."""

    lines: Annotated[tuple[str, ...], _several] = _LINES
    """Workloads; `query:100` asks for 100 items. What a server can't do is a dash."""

    connections: Annotated[tuple[PositiveInt, ...], _several] = (1, 16, 64)
    """Each line with so many of them."""

    rounds: PositiveInt = 5
    """Of each line, from server to server."""

    seconds: PositiveFloat = 3.0
    """That count, of each round."""

    warm_up: NonNegativeFloat = 1.0
    """Seconds before that in each round."""

    workers: PositiveInt = 1
    """Processes that ask."""

    keys: PositiveInt = 10_000
    """Items of each table."""

    item_size: str = "300"
    """As of a run."""

    local_index: bool = True
    """The tables have a local index, which each write goes to, too."""

    global_index: bool = False
    """The table of all lines has a global index; gsi-query brings a table with one."""

    seed: int = 1
    """As of a run."""

    directory: Path | None = None
    """On the disk to measure. Default: a temporary one."""

    output: Path | None = None
    """A directory for the results of all rounds, as JSON, which `compare` reads."""

    plot: Path | None = None
    """Also draw them: a .png, .svg or .html file."""

    serve: Annotated[tuple[str, ...], _several] = ()
    """More options for this server."""

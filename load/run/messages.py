"""What a worker process tells the one that started it: JSON, a line each."""

from __future__ import annotations

from msgspec import Struct, field, json

from dynactor.load.check.findings import Findings


class Filled(Struct, tag=True):
    """So many items were written before the run."""

    items: int


class Ready(Struct, tag=True):
    """All is connected and filled; the worker waits for ``go``."""


class Tick(Struct, tag=True):
    """What was answered within one second; latencies count by bucket."""

    second: int
    requests: int
    errors: int
    throttles: int
    latencies: dict[int, int]


class Measured(Struct):
    """What came of one operation while it counted.

    ``outcomes`` counts everything but plain success by its name; ``latencies`` counts by bucket.
    """

    requests: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    latencies: dict[int, int] = field(default_factory=dict)


class Report(Struct, tag=True):
    """The end of a worker's run.

    ``unsent`` are the waits of requests that were due and for which no connection was free to
    the end; ``lateness`` is the worker's own: how long after its time a request went out although
    a connection was free. Both count by bucket.
    """

    operations: dict[str, Measured]
    seconds: float
    cpu_seconds: float
    unsent: dict[int, int]
    lateness: dict[int, int]
    error_examples: dict[str, str]
    findings: Findings | None


class Failed(Struct, tag=True):
    """The worker can't go on; the text is for the one who started the run."""

    text: str


class Checking(Struct, tag=True):
    """The run is over, and so many items are to be read back."""

    items: int


Message = Filled | Ready | Tick | Report | Failed | Checking

encode = json.Encoder().encode
decode = json.Decoder(Message).decode

"""The messages of a worker process to its parent: JSON, one per line."""

from __future__ import annotations

from msgspec import Struct, field, json

from dynactor.load.check.findings import Findings


class Filled(Struct, tag=True):
    """The number of items written before the run."""

    items: int


class Ready(Struct, tag=True):
    """The worker is connected and the table is filled. The worker waits for ``go``."""


class Tick(Struct, tag=True):
    """The answers of one second; latencies count by bucket."""

    second: int
    requests: int
    errors: int
    throttles: int
    latencies: dict[int, int]


class Measured(Struct):
    """The measured outcomes of one operation.

    ``outcomes`` counts everything except plain success by its name; ``latencies`` counts by bucket.
    """

    requests: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    latencies: dict[int, int] = field(default_factory=dict)


class Report(Struct, tag=True):
    """The end of a worker's run.

    ``unsent`` are the waiting times of due requests that never had a free connection. ``lateness``
    are the worker's own delays of requests that had one. Both count by bucket.
    """

    operations: dict[str, Measured]
    seconds: float
    cpu_seconds: float
    unsent: dict[int, int]
    lateness: dict[int, int]
    error_examples: dict[str, str]
    findings: Findings | None


class Failed(Struct, tag=True):
    """The worker can't continue; the text is for the person who started the run."""

    text: str


class Checking(Struct, tag=True):
    """The run is over; this is the number of items to read back."""

    items: int


Message = Filled | Ready | Tick | Report | Failed | Checking

encode = json.Encoder().encode
decode = json.Decoder(Message).decode

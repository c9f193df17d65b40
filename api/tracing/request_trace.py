"""The record of a traced request: times and names, never a key or an attribute value."""

from __future__ import annotations

import time
from collections.abc import Iterator
from time import perf_counter_ns
from typing import NamedTuple

from dynactor.actors.runtime.message_times import RequestTimes
from dynactor.api.tracing.trace_parent import TraceParent


class TraceStep(NamedTuple):
    """A part of a request. Times are nanoseconds since 1970."""

    name: str
    began: int
    ended: int


class Moment(NamedTuple):
    """A point in a request. Its time is in nanoseconds since 1970."""

    name: str
    at: int


class RequestTrace(RequestTimes):
    """The record of one request; complete once ``end`` was called."""

    def __init__(self, parent: TraceParent | None) -> None:
        super().__init__()
        self.parent = parent
        # Empty for an unknown operation, because its name is any text of the client.
        self.operation = ""
        self.tables: tuple[str, ...] = ()
        self.status = 0
        self.error_code = ""
        self.request_id = ""
        self._began = perf_counter_ns()
        # 0 until the request is decoded.
        self._decoded = 0
        self._ended = 0
        self._epoch = time.time_ns() - self._began

    def decoded(self) -> None:
        """Record the time at which signature and body are verified and the operation starts."""
        self._decoded = perf_counter_ns()

    def end(self) -> None:
        """Record the time at which the answer is ready."""
        self._ended = perf_counter_ns()
        self.has_ended = True

    def whole(self) -> TraceStep:
        """The time from the start of this record, when the request has been read, to the answer."""
        return self._step(f"DynamoDB.{self.operation}".rstrip("."), self._began, self._ended)

    def moments(self) -> Iterator[Moment]:
        """Moments within the request. They are events, because spans would cost too much."""
        if self._decoded:
            yield Moment("decoded", self._decoded + self._epoch)
        if self.messages:
            yield Moment("validated", self.messages[0].entered + self._epoch)

    def steps(self) -> Iterator[TraceStep]:
        """The parts that wait for a partition. A step whose end is unknown is left out."""
        for times in self.messages:
            if times.taken:
                yield self._step("wait for mailbox", times.entered, times.taken)
            if times.accepted:
                yield self._step("commit", times.taken, times.accepted)
                if times.replied:
                    yield self._step("wait for sync", times.accepted, times.replied)
            elif times.taken and times.replied:
                yield self._step("partition", times.taken, times.replied)

    def _step(self, name: str, began: int, ended: int) -> TraceStep:
        return TraceStep(name, began + self._epoch, ended + self._epoch)

"""The protocol of a server that exports traces."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any
from typing import Protocol as Port

from msgspec import Struct, structs

from dynactor.actors.runtime.message_times import CURRENT_REQUEST
from dynactor.api.http.loop_turn import LoopTurn
from dynactor.api.http.protocol import Answer, Known, Protocol, Request
from dynactor.api.http.request_figures import Failure
from dynactor.api.requests.call import Call
from dynactor.api.requests.named_tables import named_tables
from dynactor.api.tracing.request_trace import RequestTrace
from dynactor.api.tracing.trace_parent import TRACEPARENT, trace_parent
from dynactor.storage.namespaces import Namespace


class TraceSink(Port):
    """The destination of finished traces."""

    def offer(self, trace: RequestTrace) -> None:
        """Take a trace or drop it; never wait."""


class Sampling(Struct, frozen=True):
    """Which requests are traced without a traceparent header: a ``share``, chosen by ``draw``.

    ``draw`` returns a random number from 0 to 1.
    """

    share: float
    draw: Callable[[], float] = random.random


class TracedProtocol(Protocol):
    """Answers requests, and offers a trace of each sampled one to a sink."""

    def __init__(self, *args: Any, sink: TraceSink, sampling: Sampling, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sink = sink
        self._share = sampling.share
        self._draw = sampling.draw

    def answer(self, request: Request, turn: LoopTurn | None = None) -> Answer | Awaitable[Answer]:
        """Answer a request as ``Protocol`` does, and trace it if it is sampled."""
        headers = request.headers
        parent = trace_parent(headers) if TRACEPARENT in headers else None
        is_sampled = self._draw() < self._share if parent is None else parent.is_sampled
        # The protocol calls this method again for a request that took a detour, if at all.
        if not is_sampled or self._detour is not None:
            return super().answer(request, turn)
        trace = RequestTrace(parent)
        operations = self._operations
        known = operations.get(request.target)
        if known is not None:
            # The replaced operation records the trace. It is restored below, so that requests that
            # are not traced pay nothing for it.
            self._operations = {request.target: _recording(known, trace)}
        token = CURRENT_REQUEST.set(trace)
        try:
            answer = super().answer(request, turn)
        finally:
            CURRENT_REQUEST.reset(token)
            self._operations = operations
        if isinstance(answer, Answer):
            self._end(trace, answer)
            return answer
        return self._answer_traced(trace, answer)

    async def _answer_traced(self, trace: RequestTrace, awaited: Awaitable[Answer]) -> Answer:
        token = CURRENT_REQUEST.set(trace)
        try:
            answer = await awaited
        finally:
            CURRENT_REQUEST.reset(token)
        self._end(trace, answer)
        return answer

    def _failed(
        self, failure: Failure, request_id: str, namespace: Namespace | None = None
    ) -> None:
        super()._failed(failure, request_id, namespace)
        trace = CURRENT_REQUEST.get()
        if isinstance(trace, RequestTrace):
            trace.error_code = failure.code

    def _end(self, trace: RequestTrace, answer: Answer) -> None:
        trace.end()
        trace.status = answer.status
        trace.request_id = answer.request_id
        self._sink.offer(trace)


def _recording(known: Known, trace: RequestTrace) -> Known:
    """The same operation; it records in a trace when it starts, and the names of its tables."""
    operation, decoder, latencies = known
    trace.operation = operation.name

    def handle(call: Call[Any]) -> Awaitable[bytes] | bytes:
        trace.decoded()
        trace.tables = tuple(dict.fromkeys(named_tables(call.request)))
        return operation.handle(call)

    return structs.replace(operation, handle=handle), decoder, latencies

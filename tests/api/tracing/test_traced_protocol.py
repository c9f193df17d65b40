"""Which requests are traced, and the data of traces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec import structs

from dynactor.actors.table.messages import CreateTable
from dynactor.api.http.protocol import Answer, Request
from dynactor.api.registry import OPERATIONS
from dynactor.api.tracing.request_trace import RequestTrace
from dynactor.api.tracing.traced_protocol import Sampling, TracedProtocol
from tests.support.clients.clients import AUTHORIZATION, JSON_1_0, TARGET_PREFIX
from tests.support.databases.databases import running_database, table_definition
from tests.support.databases.fake_operations import ECHO, NO_DATABASE, Gate

KEY = {"forum": {"S": "EC2"}, "subject": {"S": "a"}}
PUT = {"TableName": "Thread", "Item": KEY}
TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
WRITE_STEPS = ["wait for mailbox", "commit", "wait for sync"]


class Kept:
    """A sink that keeps all traces."""

    def __init__(self) -> None:
        self.traces: list[RequestTrace] = []

    def offer(self, trace: RequestTrace) -> None:
        self.traces.append(trace)


def request(operation: str, body: dict[str, object], **headers: str) -> Request:
    return Request(
        TARGET_PREFIX + operation,
        JSON_1_0,
        AUTHORIZATION,
        "",
        "localhost",
        "",
        "",
        msgspec.json.encode(body),
        headers=headers,
    )


async def answer(protocol: TracedProtocol, asked: Request) -> Answer:
    answer = protocol.answer(asked)
    return answer if isinstance(answer, Answer) else await answer


@asynccontextmanager
async def traced(share: float = 1.0) -> AsyncIterator[tuple[TracedProtocol, Kept]]:
    """A protocol over a database with the table Thread, and its traces."""
    kept = Kept()
    async with running_database(is_traced=True) as database:
        await database.ask(CreateTable(table_definition()))
        sampling = Sampling(share, lambda: 0.5)
        yield TracedProtocol(database, OPERATIONS.values(), sink=kept, sampling=sampling), kept


def steps_of(trace: RequestTrace) -> list[str]:
    return [step.name for step in trace.steps()]


async def test_a_write_has_its_steps_in_order():
    async with traced() as (protocol, kept):
        answered = await answer(protocol, request("PutItem", PUT))
    (trace,) = kept.traces
    assert trace.whole().name == "DynamoDB.PutItem"
    assert trace.tables == ("Thread",)
    assert (trace.status, trace.error_code) == (200, "")
    assert trace.request_id == answered.request_id
    assert steps_of(trace) == WRITE_STEPS
    assert [moment.name for moment in trace.moments()] == ["decoded", "validated"]
    whole = trace.whole()
    moments = [moment.at for moment in trace.moments()]
    steps = [time for step in trace.steps() for time in (step.began, step.ended)]
    times = [whole.began, *moments, *steps, whole.ended]
    assert times == sorted(times)


async def test_a_read_from_memory_has_no_waits():
    async with traced() as (protocol, kept):
        await answer(protocol, request("GetItem", {"TableName": "Thread", "Key": KEY}))
    (trace,) = kept.traces
    assert steps_of(trace) == []
    assert [moment.name for moment in trace.moments()] == ["decoded"]


async def test_a_failed_request_has_its_error_and_status():
    async with traced() as (protocol, kept):
        await answer(protocol, request("GetItem", {"TableName": "Missing", "Key": KEY}))
        await answer(
            protocol, request("PutItem", PUT | {"ConditionExpression": "size(forum) > :n"})
        )
        body = PUT | {"ConditionExpression": "attribute_exists(forum)"}
        await answer(protocol, request("PutItem", body))
        await answer(protocol, request("GetItems", {}))
    codes = [(trace.operation, trace.status, trace.error_code) for trace in kept.traces]
    assert codes == [
        ("GetItem", 400, "ResourceNotFoundException"),
        ("PutItem", 400, "ValidationException"),
        ("PutItem", 400, "ConditionalCheckFailedException"),
        ("", 400, "UnknownOperationException"),
    ]
    # A write with a failed condition has the same steps, because the partition decides it, too.
    assert steps_of(kept.traces[2]) == WRITE_STEPS
    assert kept.traces[3].whole().name == "DynamoDB"


async def test_a_transaction_names_its_tables_and_waits_for_each_partition():
    async with traced() as (protocol, kept):
        await protocol.database.ask(CreateTable(table_definition("Forum")))
        puts = [{"Put": PUT}, {"Put": PUT | {"TableName": "Forum"}}]
        answered = await answer(protocol, request("TransactWriteItems", {"TransactItems": puts}))
        assert answered.status == 200
    (trace,) = kept.traces
    assert trace.tables == ("Thread", "Forum")
    assert steps_of(trace).count("wait for mailbox") >= 2


async def test_the_first_messages_of_a_large_batch_are_timed():
    writes = [
        {"PutRequest": {"Item": {"forum": {"S": "EC2"}, "subject": {"S": str(number)}}}}
        for number in range(25)
    ]
    async with traced() as (protocol, kept):
        await answer(protocol, request("BatchWriteItem", {"RequestItems": {"Thread": writes}}))
    (trace,) = kept.traces
    assert steps_of(trace).count("wait for mailbox") == 8


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.4, 0), (0.6, 1), (1.0, 1)])
async def test_a_share_of_the_requests_is_traced(share: float, count: int):
    async with traced(share) as (protocol, kept):
        await answer(protocol, request("PutItem", PUT))
    assert len(kept.traces) == count


@pytest.mark.parametrize(("share", "flags", "count"), [(0.0, "01", 1), (1.0, "00", 0)])
async def test_the_caller_decides_for_its_own_requests(share: float, flags: str, count: int):
    async with traced(share) as (protocol, kept):
        header = f"00-{TRACE_ID}-{SPAN_ID}-{flags}"
        await answer(protocol, request("PutItem", PUT, traceparent=header))
    assert len(kept.traces) == count
    for trace in kept.traces:
        assert trace.parent is not None
        assert f"{trace.parent.span_id:016x}" == SPAN_ID


async def test_a_delayed_request_is_traced_once():
    kept, gate = Kept(), Gate()
    operations = [ECHO, gate.operation]
    protocol = TracedProtocol(NO_DATABASE, operations, sink=kept, sampling=Sampling(1.0))
    await protocol.hold()
    held = protocol.answer(request("Echo", {}))
    databases: Any = SimpleNamespace(main=NO_DATABASE, separation="shared")
    protocol.resume(databases)
    assert not isinstance(held, Answer)
    assert (await held).status == 200
    assert len(kept.traces) == 1


async def test_a_partition_started_by_a_traced_request_adds_no_later_steps_to_the_trace():
    async with traced() as (protocol, kept):
        await answer(protocol, request("PutItem", PUT))
        (first,) = kept.traces
        before = steps_of(first)
        protocol._share = 0.0
        for _ in range(3):
            await answer(protocol, request("PutItem", PUT))
    assert steps_of(first) == before
    assert len(kept.traces) == 1


async def test_operations_that_replace_others_are_traced():
    kept = Kept()
    protocol = TracedProtocol(NO_DATABASE, [ECHO], sink=kept, sampling=Sampling(1.0))
    protocol.replace_operations(lambda operation: structs.replace(operation, name="Other"))
    await answer(protocol, request("Echo", {}))
    assert [trace.operation for trace in kept.traces] == ["Other"]

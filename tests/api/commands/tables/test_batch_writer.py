"""BatchWriteItem with unprocessed writes, refused items, and throttling."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.api.clients.client import RequestFailed, RetryingEndpoint
from dynactor.api.clients.reach import CannotCall
from dynactor.api.commands.tables.batch_writer import BatchWriter
from tests.support.clients.database_endpoint import no_pause

FAULTY = 7


class FakeEndpoint:
    """Keeps the put keys; leaves the last write of each batch unprocessed, and refuses one item."""

    def __init__(self, error_type: str = "ValidationException") -> None:
        self.keys: list[int] = []
        self.sizes: list[int] = []
        self.error_type = error_type

    async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        assert operation == "BatchWriteItem"
        writes = request["RequestItems"]["t"]
        self.sizes.append(len(writes))
        keys = [int(write["PutRequest"]["Item"]["k"]["N"]) for write in writes]
        if FAULTY in keys:
            raise RequestFailed(self.error_type, "wrong item")
        kept = keys if len(keys) == 1 else keys[:-1]
        self.keys += kept
        unprocessed = writes[len(kept) :]
        return {"UnprocessedItems": {"t": unprocessed} if unprocessed else {}}


def puts(*keys: int) -> list[dict[str, Any]]:
    return [{"PutRequest": {"Item": {"k": {"N": str(key)}}}} for key in keys]


async def test_unprocessed_writes_are_repeated_until_all_are_written():
    endpoint = FakeEndpoint()
    refused = await BatchWriter(endpoint, "t", no_pause).write(puts(*range(100, 160)))
    assert refused == []
    assert sorted(endpoint.keys) == list(range(100, 160))
    assert max(endpoint.sizes) == 25


async def test_a_refused_item_is_found_and_the_others_of_its_batch_are_written():
    endpoint = FakeEndpoint()
    refused = await BatchWriter(endpoint, "t", no_pause).write(puts(5, 6, FAULTY, 8))
    assert [each.place for each in refused] == [2]
    assert refused[0].error.message == "wrong item"
    assert sorted(endpoint.keys) == [5, 6, 8]


async def test_an_error_of_the_whole_table_is_raised():
    endpoint = FakeEndpoint("ResourceNotFoundException")
    with pytest.raises(RequestFailed, match="ResourceNotFoundException"):
        await BatchWriter(endpoint, "t", no_pause).write(puts(FAULTY))


async def test_a_request_is_repeated_while_its_server_is_away_or_throttles():
    failures: list[Exception] = [
        CannotCall("the server is away"),
        RequestFailed("ThrottlingException", "too fast"),
    ]
    pauses: list[float] = []
    lines: list[str] = []

    class Failing:
        async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
            if failures:
                raise failures.pop(0)
            return {operation: request}

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    endpoint = RetryingEndpoint(Failing(), pause, lines.append)
    assert await endpoint.call("Scan", {}) == {"Scan": {}}
    # The longer pause while the server is away does not lengthen the next one.
    assert pauses == [1.0, 0.1]
    assert lines == ["waiting: the server is away", "continuing"]


async def test_a_request_is_reported_after_it_was_throttled_eight_times():
    asked = 0
    said: list[tuple[int, str]] = []

    class Throttling:
        async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
            nonlocal asked
            asked += 1
            if asked <= 9:
                raise RequestFailed("ThrottlingException", f"too many {operation} {request}")
            return {}

    endpoint = RetryingEndpoint(Throttling(), no_pause, lambda line: said.append((asked, line)))
    assert await endpoint.call("Scan", {}) == {}
    assert said == [(8, "waiting: ThrottlingException: too many Scan {}"), (10, "continuing")]


async def test_only_the_limit_of_a_stream_passes_with_time():
    class Limited:
        def __init__(self) -> None:
            self.calls = 0

        async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
            self.calls += 1
            if self.calls == 1:
                raise RequestFailed("LimitExceededException", f"too many {operation} {request}")
            return {}

    assert await RetryingEndpoint(Limited(), no_pause, lambda _: None).call("GetRecords", {}) == {}
    with pytest.raises(RequestFailed, match="LimitExceededException"):
        await RetryingEndpoint(Limited(), no_pause, lambda _: None).call("CreateTable", {})

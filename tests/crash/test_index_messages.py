"""Duplicate, late and repeated messages to indexes change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest
import structlog

from dynactor.actors.feeds.index_lag import IndexLag
from dynactor.actors.indexes.global_index import GlobalIndexActors
from dynactor.actors.splitting.split_settings import SplitSettings
from dynactor.streams.shard import ShardSettings
from tests.support.clients.wire import Connection
from tests.support.histories.history import History
from tests.support.servers.in_process import MessageFaults, running_in_process
from tests.support.writers.indexed_database import Comparison, IndexMaker, fill, make_indexed_tables
from tests.support.writers.writers import Writers

FEW_ROUNDS = 1
FEW_ANSWERS = 1_000
MANY_ANSWERS = 4_000
FILLERS = 250
ROLLING = ShardSettings(shard_roll_seconds=0.2)
SPLITTING = {
    "splits": SplitSettings(size_limit_bytes=30_000, check_seconds=0.05),
    "partitions_per_table": 1,
}


async def written_and_compared(
    draw: Random,
    answers: int,
    timeout_seconds: float,
    *,
    keep_indexes: bool = False,
    enough: Callable[[], bool] = lambda: True,
    **settings: Any,
) -> tuple[list[str], int]:
    """Let clients write and add indexes; return the violations and the number of added indexes.

    The clients write until they have received ``answers`` answers and ``enough`` returns True.
    """
    history = History()
    lag = IndexLag(0, 0.01, draw.randrange(100))
    async with running_in_process(
        index_lag=lag, streams=ROLLING, keep_streams_seconds=0.1, **settings
    ) as (host, port):
        connections = [await Connection.open(host, port) for _ in range(2)]
        connection, making = connections
        try:
            await make_indexed_tables(connection)
            await fill(connection, history, FILLERS, draw)
            comparison = Comparison(history)
            writers = Writers(history, draw)
            maker = IndexMaker(making, draw, keep_indexes=keep_indexes)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(writers.run(host, port))
                tasks.create_task(maker.run())
                await writers.wait_answers(answers)
                while not enough():
                    await writers.wait_answers(writers.answers + 100)
                writers.stopping = maker.stopping = True
            return await comparison.violations(connection, timeout_seconds), maker.added
        finally:
            for each in connections:
                await each.close()


def both_split(logs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether partitions of a table and of an index were split."""
    split = [log["index_id"] for log in logs if log["event"] == "partition_split"]
    return 0 in split and any(split)


@pytest.mark.parametrize("settings", [{}, SPLITTING], ids=["partitions stay", "and are split"])
async def test_duplicate_late_and_repeated_messages_change_nothing(
    monkeypatch: pytest.MonkeyPatch, rounds: int | None, settings: dict[str, Any]
) -> None:
    for seed in range(rounds or FEW_ROUNDS):
        draw = Random(seed)
        faults = MessageFaults(GlobalIndexActors.ask, draw)
        with monkeypatch.context() as patch, structlog.testing.capture_logs() as logs:
            patch.setattr(
                GlobalIndexActors,
                "ask",
                lambda actors, place, message, faults=faults: faults.ask(actors, place, message),
            )
            answers = MANY_ANSWERS if rounds else FEW_ANSWERS
            found, added = await written_and_compared(
                draw,
                answers,
                timeout_seconds=30,
                enough=lambda logs=logs: not settings or both_split(logs),
                **settings,
            )

        assert found == [], seed
        assert added
        assert faults.doubled
        assert faults.late
        assert faults.crashes
        assert bool(settings) == both_split(logs)
        # Some of the writers' requests are refused, which is logged, too.
        refused = {"request_failed", "requests_not_logged"}
        assert {log["event"] for log in logs} - refused <= {"actor_crashed", "partition_split"}

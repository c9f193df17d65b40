"""All changes are published while clients write, items expire, and server and broker are ended.

A consumer rebuilds every table exactly. Each change is a client's or a deletion by time to live, is
marked correctly, and comes in an order that explains the answers. With exactly-once delivery there
are no duplicates. ``--rounds N`` runs N rounds at full size.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.kafka.kafka_broker import KafkaBroker
from tests.support.kafka.kafka_rounds import Serving, run_round, wait_for
from tests.support.kafka.kafka_server import partition_counts
from tests.support.writers.expiring_writers import ExpiringWriters


class Size(NamedTuple):
    """The number of writes and kills, and the duration of the broker's outage."""

    writes: int
    kills: int
    outage_seconds: float


# With these limits, tables that grow to about 50 KB are split.
SPLITTING = (
    *("--partitions-per-table", "1", "--partition-limit-bytes", "4000"),
    *("--split-check-seconds", "0.1", "--keep-streams-seconds", "0.5"),
)
_SPLIT_SECONDS = 60
_MORE_WRITES = 100
SHORT = Size(writes=2_000, kills=2, outage_seconds=1)
FULL = Size(writes=50_000, kills=5, outage_seconds=60)


async def write_during_kills_and_outage(
    writers: ExpiringWriters, serving: Serving, broker: KafkaBroker, size: Size
) -> None:
    """Kill the server and stop the broker at moments spread over the writes.

    Half of the kills happen before the outage of the broker, at least one during the outage, and
    one right after it, while the backlog is published.
    """
    pause = size.writes // (size.kills + 3)
    before = size.kills // 2
    for _ in range(before):
        await writers.wait_writes(pause)
        await serving.kill_and_start(writers)
    await writers.wait_writes(pause)
    await asyncio.to_thread(broker.stop)
    ends_at = time.monotonic() + size.outage_seconds
    for _ in range(size.kills - before - 1):
        await writers.wait_writes(pause)
        await serving.kill_and_start(writers)
    await writers.wait_writes(pause)
    await wait_for(lambda: time.monotonic() >= ends_at, "the outage is over")
    await asyncio.to_thread(broker.start)
    await serving.kill_and_start(writers)
    await writers.wait_writes(max(pause, size.writes - writers.writes))


async def split_often(writers: ExpiringWriters, serving: Serving, at_least: int) -> dict[str, int]:
    """Write until each table has this many partitions; return the partition counts.

    How many writes this takes depends on the machine.
    """
    async with asyncio.timeout(_SPLIT_SECONDS):
        while True:
            counts = await asyncio.to_thread(partition_counts, serving.server)
            if min(counts.values()) >= at_least:
                return counts
            await writers.wait_writes(_MORE_WRITES)


# Deliveries, formats and numbers of partitions. Short runs use each once.
ALL_WAYS = tuple(product(("at-least-once", "exactly-once"), (("dynamodb", 1), ("debezium", 3))))
SHORT_WAYS = (ALL_WAYS[0], ALL_WAYS[3])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_full = metafunc.config.getoption("--rounds") is not None
    if "published_as" in metafunc.fixturenames:
        ways = ALL_WAYS if is_full else SHORT_WAYS
        names = [f"{delivery}-{form}" for delivery, (form, _) in ways]
        metafunc.parametrize(("delivery", "published_as"), ways, ids=names)
    elif "delivery" in metafunc.fixturenames:
        # Short runs use the delivery that can fail in more ways.
        metafunc.parametrize(
            "delivery", ["at-least-once", "exactly-once"] if is_full else ["exactly-once"]
        )


async def test_a_consumer_rebuilds_tables_that_many_clients_wrote(  # noqa: PLR0917 - fixtures
    breakable_broker: KafkaBroker,
    tmp_path: Path,
    delivery: str,
    published_as: tuple[str, int],
    rounds: int | None,
    tell: Callable[[str], None],
):
    form, partitions = published_as
    options = ("--kafka-delivery", delivery, "--kafka-format", form, "--ttl-delay-seconds", "0.1")
    options += ("--partitions-per-table", str(partitions))
    for seed in range(rounds or 1):
        size = FULL if rounds else SHORT
        directory = tmp_path / f"{seed}"
        began = time.monotonic()

        async def fault(writers: ExpiringWriters, serving: Serving, size: Size = size) -> None:
            await write_during_kills_and_outage(writers, serving, breakable_broker, size)

        draw = random.Random(seed)
        outcome = await run_round(breakable_broker, directory, options, draw, fault)
        tell(
            f"{delivery}, {form}, {partitions} partitions, {size.kills} kills: {outcome}, "
            f"{time.monotonic() - began:.0f} s"
        )
        assert outcome.found == []
        assert delivery == "at-least-once" or outcome.duplicates == 0
        assert {origin for _, origin in outcome.events} == {"user", "ttl"}
        assert outcome.gaps == 0


async def test_a_consumer_rebuilds_tables_whose_partitions_are_split(
    breakable_broker: KafkaBroker,
    tmp_path: Path,
    delivery: str,
    rounds: int | None,
    tell: Callable[[str], None],
):
    options = ("--kafka-delivery", delivery, "--ttl-delay-seconds", "0.1", *SPLITTING)
    for seed in range(rounds or 1):
        size = FULL if rounds else SHORT
        counts: list[dict[str, int]] = []
        began = time.monotonic()

        async def fault(
            writers: ExpiringWriters,
            serving: Serving,
            size: Size = size,
            counts: list[dict[str, int]] = counts,
        ) -> None:
            await write_during_kills_and_outage(writers, serving, breakable_broker, size)
            counts.append(await split_often(writers, serving, 4 if rounds else 2))

        draw = random.Random(seed)
        directory = tmp_path / f"{seed}"
        outcome = await run_round(breakable_broker, directory, options, draw, fault)
        tell(
            f"{delivery}, split into {sorted(counts[0].values())} partitions, {size.kills} kills: "
            f"{outcome}, {time.monotonic() - began:.0f} s"
        )
        assert outcome.found == []
        assert delivery == "at-least-once" or outcome.duplicates == 0
        assert outcome.gaps == 0

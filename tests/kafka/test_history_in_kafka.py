"""Clients write, items expire, the server is killed, the broker stopped: all is published.

A consumer rebuilds every table exactly. Each change is either a client's or time to live's, in the
order of the item's answers, and marked correctly. With exactly once, there are no duplicates.
``--rounds N`` runs N rounds at full size.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.crowds.expiring_crowd import ExpiringCrowd
from tests.support.kafka.kafka_broker import KafkaBroker
from tests.support.kafka.kafka_rounds import Serving, run_round, wait_for
from tests.support.kafka.kafka_server import partition_counts


class Size(NamedTuple):
    """The number of writes, and the duration of the broker's outage."""

    writes: int
    kills: int
    outage_seconds: float


# For tables of about 50 KB each, which grow during the writes.
SPLITTING = (
    *("--partitions-per-table", "1", "--partition-limit-bytes", "4000"),
    *("--split-check-seconds", "0.1", "--keep-streams-seconds", "0.5"),
)
_SPLIT_SECONDS = 60
_MORE_WRITES = 100
SHORT = Size(writes=2_000, kills=2, outage_seconds=1)
FULL = Size(writes=50_000, kills=5, outage_seconds=60)


async def write_through_trouble(
    crowd: ExpiringCrowd, serving: Serving, broker: KafkaBroker, size: Size
) -> None:
    """Kills and the outage, spread over the writes.

    Half of the kills come before the outage, at least one during it, and one right after it, while
    the backlog is published.
    """
    pause = size.writes // (size.kills + 3)
    before = size.kills // 2
    for _ in range(before):
        await crowd.wait_writes(pause)
        await serving.kill_and_start(crowd)
    await crowd.wait_writes(pause)
    await asyncio.to_thread(broker.stop)
    ends_at = time.monotonic() + size.outage_seconds
    for _ in range(size.kills - before - 1):
        await crowd.wait_writes(pause)
        await serving.kill_and_start(crowd)
    await crowd.wait_writes(pause)
    await wait_for(lambda: time.monotonic() >= ends_at, "the outage is over")
    await asyncio.to_thread(broker.start)
    await serving.kill_and_start(crowd)
    await crowd.wait_writes(max(pause, size.writes - crowd.writes))


async def split_often(crowd: ExpiringCrowd, serving: Serving, at_least: int) -> dict[str, int]:
    """Continue writing until each table has this many partitions; returns the number of each.

    The number of splits during a number of writes depends on the machine.
    """
    async with asyncio.timeout(_SPLIT_SECONDS):
        while True:
            counts = await asyncio.to_thread(partition_counts, serving.server)
            if min(counts.values()) >= at_least:
                return counts
            await crowd.wait_writes(_MORE_WRITES)


FORMS = [("dynamodb", 1), ("debezium", 3)]


@pytest.mark.parametrize("published_as", FORMS, ids=[form for form, _ in FORMS])
@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
async def test_a_consumer_rebuilds_what_many_clients_wrote(  # noqa: PLR0917 - fixtures
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

        async def trouble(crowd: ExpiringCrowd, serving: Serving, size: Size = size) -> None:
            await write_through_trouble(crowd, serving, breakable_broker, size)

        draw = random.Random(seed)
        outcome = await run_round(breakable_broker, directory, options, draw, trouble)
        tell(
            f"{delivery}, {form}, {partitions} partitions, {size.kills} kills: {outcome}, "
            f"{time.monotonic() - began:.0f} s"
        )
        assert outcome.found == []
        assert delivery == "at-least-once" or outcome.duplicates == 0
        assert {origin for _, origin in outcome.events} == {"user", "ttl"}
        assert outcome.gaps == 0


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
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

        async def trouble(
            crowd: ExpiringCrowd,
            serving: Serving,
            size: Size = size,
            counts: list[dict[str, int]] = counts,
        ) -> None:
            await write_through_trouble(crowd, serving, breakable_broker, size)
            counts.append(await split_often(crowd, serving, 4 if rounds else 2))

        draw = random.Random(seed)
        directory = tmp_path / f"{seed}"
        outcome = await run_round(breakable_broker, directory, options, draw, trouble)
        tell(
            f"{delivery}, split into {sorted(counts[0].values())} partitions, {size.kills} kills: "
            f"{outcome}, {time.monotonic() - began:.0f} s"
        )
        assert outcome.found == []
        assert delivery == "at-least-once" or outcome.duplicates == 0
        assert outcome.gaps == 0

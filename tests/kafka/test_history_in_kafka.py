"""Many clients write, items expire, the server is killed and the broker stopped: all is published.

A consumer rebuilds every table exactly, each change that it was told is one that a client made or
time to live, in the order of the item's answers, and it can tell which of the two it was. Exactly
once nothing comes twice. ``--rounds N`` runs N rounds at full size.
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
    """How much is written in all, and how long the broker is away."""

    writes: int
    kills: int
    outage_seconds: float


# Tables of some 50 KB each, which grow while they are written to.
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

    Half of the kills come before the outage, one or more in it, and one as soon as it ends: while
    what has gathered is published.
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
    """Write on until each table has so many partitions; how many each has.

    How often they are split while a number of items is written is the machine's.
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

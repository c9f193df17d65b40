"""A consumer that measures how late changes come: ``python -m tests.load.kafka_lag``.

It reads ``bootstrap servers``, ``topic`` and the isolation level as JSON from the first line of
its standard input, waits for what is written from then on, prints ``ready``, and prints a
``LagReport`` when a second line comes. The lag is the time from the commit of a change to the
moment at which the consumer has it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter

import msgspec
from aiokafka import AIOKafkaConsumer
from msgspec import Struct

from tests.load.generator import bucket
from tests.support.kafka_broker import LARGEST_MESSAGE_BYTES
from tests.support.server import PROJECT


class LagPlan(Struct, frozen=True):
    """What to read."""

    bootstrap_servers: str
    topic: str
    isolation_level: str


class LagReport(Struct, frozen=True):
    """How many records came, and their lags by bucket."""

    records: int
    lags: dict[int, int]


class Lag:
    """The consumer in a process of its own."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, plan: LagPlan) -> Lag:
        """Start the process and wait until it reads."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__), cwd=PROJECT, stdin=PIPE, stdout=PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(plan) + b"\n")
        if await process.stdout.readline() != b"ready\n":
            raise RuntimeError("the consumer failed, see above")
        return cls(process)

    async def stop(self) -> LagReport:
        """Read no more, and say what came."""
        output, _ = await self._process.communicate(b"stop\n")
        return msgspec.json.decode(output, type=LagReport)


class _Image(Struct):
    ApproximateCreationDateTime: int


class _Value(Struct):
    dynamodb: _Image


_decoder = msgspec.json.Decoder(_Value)


async def _read(consumer: AIOKafkaConsumer, lags: Counter[int]) -> None:
    while True:
        for records in (await consumer.getmany(timeout_ms=100)).values():
            now = time.time()
            for record in records:
                told_ms = _decoder.decode(record.value).dynamodb.ApproximateCreationDateTime
                lags[bucket(max(now - told_ms / 1_000, 1e-6))] += 1


async def _main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=LagPlan)
    consumer = AIOKafkaConsumer(
        plan.topic,
        bootstrap_servers=plan.bootstrap_servers,
        isolation_level=plan.isolation_level,
        enable_auto_commit=False,
        max_partition_fetch_bytes=LARGEST_MESSAGE_BYTES,
    )
    lags: Counter[int] = Counter()
    await consumer.start()
    try:
        await consumer.seek_to_end()
        for partition in consumer.assignment():
            await consumer.position(partition)
        print("ready", flush=True)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(_read(consumer, lags))
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.readline)
            reading.cancel()
    finally:
        await consumer.stop()
    sys.stdout.buffer.write(msgspec.json.encode(LagReport(sum(lags.values()), dict(lags))))


if __name__ == "__main__":
    asyncio.run(_main())

"""The age of changes when a consumer of their topic gets them.

``python -m tests.load.kafka_lag`` reads a ``Plan`` as JSON from the first line of its standard
input, goes to the topic's end and prints ``ready``. It reads until a second line comes, and prints
a ``Report``. ``Follower`` controls it from the benchmark's process.

The age of a change is measured from its commit time. The record has the commit time in
microseconds. The commit time is before the acknowledgment. Only a sample of the records is parsed.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from time import time

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from msgspec import Struct

from tests.load.generator import bucket
from tests.load.measuring_process import MeasuringProcess
from tests.support.kafka.kafka_broker import GivenBroker
from tests.support.kafka.kafka_consumer import Isolation
from tests.support.kafka.kafka_topics import partition_count

_POLL_MILLISECONDS = 200


class Plan(Struct, frozen=True):
    """The topic to read, and the share of records to inspect."""

    bootstrap_servers: str
    topic: str
    isolation: Isolation
    records_to_a_sample: int = 20


class Report(Struct):
    """The result; lags count by bucket."""

    records: int
    lags: dict[int, int]


class Follower:
    """The consumer in a separate process."""

    def __init__(self, process: MeasuringProcess) -> None:
        self._process = process

    @classmethod
    async def start(cls, plan: Plan) -> Follower:
        """Start the process and wait until it reads."""
        return cls(await MeasuringProcess.start(__name__, plan))

    async def stop(self) -> Report:
        """Stop reading; returns the report."""
        return msgspec.json.decode(await self._process.report(), type=Report)


class _Images(Struct):
    ApproximateCreationDateTime: int


class _Change(Struct):
    dynamodb: _Images


async def _read(consumer: AIOKafkaConsumer, plan: Plan, report: Report) -> None:
    decode = msgspec.json.Decoder(_Change).decode
    lags: Counter[int] = Counter()
    report.lags = lags
    while True:
        read = await consumer.getmany(timeout_ms=_POLL_MILLISECONDS)
        now = time()
        for records in read.values():
            for record in records:
                report.records += 1
                if report.records % plan.records_to_a_sample == 0:
                    made_us = decode(record.value).dynamodb.ApproximateCreationDateTime
                    lags[bucket(max(1e-6, now - made_us / 1e6))] += 1


async def _main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=Plan)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=plan.bootstrap_servers,
        isolation_level=plan.isolation,
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        count = await partition_count(GivenBroker(plan.bootstrap_servers), plan.topic)
        partitions = [TopicPartition(plan.topic, number) for number in range(count)]
        consumer.assign(partitions)
        await consumer.seek_to_end(*partitions)
        for partition in partitions:
            await consumer.position(partition)
        report = Report(0, {})
        print("ready", flush=True)
        reading = asyncio.ensure_future(_read(consumer, plan, report))
        ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.readline)
        await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            await reading
        reading.cancel()
        await asyncio.wait([reading])
    finally:
        await consumer.stop()
    sys.stdout.buffer.write(msgspec.json.encode(Report(report.records, dict(report.lags))))


if __name__ == "__main__":
    if sys.platform != "win32":
        import uvloop

        uvloop.run(_main())
    else:
        asyncio.run(_main())

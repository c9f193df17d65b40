"""The old and the new ways to publish a table give a topic the same records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from dynactor.actors.derived.kafka import relay, replay, topic_relay, topic_replay
from dynactor.actors.derived.kafka.kafka_environment import KafkaEnvironment
from dynactor.actors.derived.kafka.relay_environment import RelayEnvironment, RelayTarget
from dynactor.actors.derived.kafka.replay_progress import ReplayStart
from dynactor.actors.derived.kafka.shared_publisher import SharedPublisher
from dynactor.actors.partition.change_feed import ChangeFeed, RecentChanges
from dynactor.storage import key_layout
from dynactor.storage.store import Group, Store
from dynactor.streams import change_log
from dynactor.streams.kafka.message import KafkaMessage
from dynactor.streams.sequence_number import SequenceNumber
from tests.actors.kafka.test_publishing_steps import SOURCE
from tests.support.databases.databases import SetClock, thread
from tests.support.databases.published import TOPIC, relay_settings, without_duplicates
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.stepped_store import soon
from tests.support.stores.store import memory_store
from tests.support.streams.changes import change

# The parent of each log; the last change of the first one was not recorded.
PARENTS = {1: None, 2: None, 3: 1, 4: 1, 5: 3, 6: 3}
ENDED = {1, 3}
RECORDS = 700


async def feeds_in(store: Store) -> list[ChangeFeed]:
    feeds = []
    recent = RecentChanges()
    for number, parent in PARENTS.items():
        feed = ChangeFeed(number, store, recent, parent)
        feed.begin(0)
        # A log that is empty between two others.
        last = 0 if number == 3 else RECORDS
        rows = [
            change_log.row(
                change(
                    thread(f"forum {counter % 40}", f"s{number}", n=counter),
                    None,
                    {},
                    SequenceNumber(number, counter),
                )
            )
            for counter in range(1, last + 1)
        ]
        head = b"head %d" % number
        await (await store.commit([Group(head, None, b"", puts=rows)]))
        feed.begin(last + 3 if number == 1 else last, 0)
        if number in ENDED:
            feed.end()
        feeds.append(feed)
    return feeds


def by_partition(broker: FakeBroker) -> list[list[KafkaMessage]]:
    """What each Kafka partition tells of each item, without duplicates."""
    found = []
    for number in range(3):
        messages = without_duplicates(broker.partition(TOPIC, number))
        found.append(sorted(messages, key=lambda message: message.key))
    return found


async def give_trouble(broker: FakeBroker, trouble: str) -> None:
    if trouble == "lost acknowledgements":
        broker.lost_acknowledgements = 3
    elif trouble == "failures":
        broker.failures = 7
    elif trouble == "small batches":
        broker.max_batch_bytes = 1_500
    elif trouble == "lost commits":
        broker.lost_commits = 2
    elif trouble == "cancelled answers":
        broker.cancelled_answers = 5
    elif trouble == "away":
        with broker.away():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(actor) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(actor.run())
        try:
            yield
        finally:
            actor.mailbox.close()
            await running


TROUBLES = [
    "none",
    "lost acknowledgements",
    "failures",
    "small batches",
    "lost commits",
    "cancelled answers",
    "away",
]


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_relays(delivery: str, trouble: str) -> None:
    settings = relay_settings(delivery=delivery)
    told = []
    stored = []
    async with memory_store() as store:
        feeds = await feeds_in(store)
        for way, environment_of in ((relay, RelayEnvironment), (topic_relay, KafkaEnvironment)):
            broker = FakeBroker()
            subscriber = key_layout.destination_subscriber(1, len(told))
            environment = environment_of(
                broker, SharedPublisher(broker), settings, SetClock(), set(), Random(1)
            )
            target = way.RelayTarget(1, subscriber, "id", TOPIC, SOURCE)
            given = (settings,) if way is topic_relay else ()
            actor = way.KafkaRelay(
                target, feeds, store, environment, *given, settled=lambda count: None
            )
            async with running(actor):
                await give_trouble(broker, trouble)
                async with asyncio.timeout(30):
                    await soon_published(actor)
            told.append(by_partition(broker))
            keys = [key_layout.checkpoint(subscriber, number) for number in PARENTS]
            stored.append(await store.latest.load(keys))
    assert told[0] == told[1]
    assert sum(map(len, told[0])) == RECORDS * 5
    assert stored[0] == stored[1]


async def soon_published(actor) -> None:
    while actor.lag_records:
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_replays(trouble: str, follows: bool) -> None:
    settings = relay_settings()
    told, progress = [], []
    positions = {1: 10, 2: 20, 3: 0, 4: 0, 5: 30, 6: 0}
    async with memory_store() as store:
        feeds = await feeds_in(store)
        subscriber = key_layout.destination_subscriber(1, 7)
        rows = [
            (key_layout.checkpoint(subscriber, number), counter.to_bytes(8, "big"))
            for number, counter in positions.items()
        ]
        await (await store.commit([Group(b"some head", None, b"", puts=rows)]))
        for way in (replay, topic_replay):
            broker = FakeBroker()
            if way is replay:
                place = replay.ReplayPlace(
                    "x", 1, SOURCE, TOPIC, ReplayStart("beginning"), follows, positions, True, 0
                )
                actor = replay.Replay(
                    place,
                    feeds,
                    store,
                    SetClock(),
                    broker=broker,
                    settings=settings,
                    ended=lambda: None,
                    randomness=Random(1),
                )
            else:
                place = topic_replay.ReplayPlace(
                    "x", subscriber, SOURCE, TOPIC, ReplayStart("beginning"), follows, True, 0
                )
                environment = KafkaEnvironment(
                    broker, SharedPublisher(broker), settings, SetClock(), set(), Random(1)
                )
                actor = topic_replay.Replay(place, feeds, store, environment, ended=lambda: None)
            async with running(actor):
                await give_trouble(broker, trouble)
                state = "FOLLOWING" if follows else "DONE"
                await soon(lambda: actor.progress.state == state)
                progress.append(actor.progress)
            told.append(by_partition(broker))
            assert broker.open_publishers == set()
    assert told[0] == told[1]
    assert progress[0] == progress[1]
    assert sum(map(len, told[0])) == RECORDS * 5 - 60

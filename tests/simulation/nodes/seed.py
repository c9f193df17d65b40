"""One simulated run: nodes, clients and faults, all determined by a seed."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from random import Random
from typing import Any, Final
from unittest.mock import patch

import anyio
import structlog
from anyio._backends import _asyncio as anyio_asyncio
from msgspec import Struct

from dynactor.actors.database import database
from dynactor.actors.feeds.change_feed import RecentChanges
from dynactor.actors.partition import partition
from dynactor.storage import key_layout
from dynactor.storage.catalog import decode_claim, decode_record
from dynactor.storage.postgresql.sql import LEADER_SLOT, SLOT_SHIFT
from dynactor.storage.store import StoreError
from dynactor.streams.shard import ShardSettings
from tests.simulation.nodes.availability import Availability
from tests.simulation.nodes.checks import violations
from tests.simulation.nodes.committed_logs import CommittedLogs
from tests.simulation.nodes.fake_connections import Network, replacing_connections
from tests.simulation.nodes.fake_kafka import KafkaNetwork
from tests.simulation.nodes.fake_postgresql import Commit, FakePostgresql
from tests.simulation.nodes.lasting_doubts import MOST_DOUBT_SECONDS, watch_doubts
from tests.simulation.nodes.published_topics import topic_violations
from tests.simulation.nodes.real_nodes import Cluster, running_cluster
from tests.simulation.nodes.splitting import split_partitions
from tests.simulation.nodes.stream_readers import StreamReader
from tests.simulation.nodes.table_maker import TableMaker, restore_accounts
from tests.simulation.nodes.workload import PASSING, TABLES, Workload
from tests.support.environment.simulated_loop import NODE, SimulatedLoop

# Client tokens are grouped by ten minutes, and a group ends soon after the start.
_START_EPOCH_SECONDS: Final = 2_991_959 * 600.0
_MOST_EARLY_SECONDS: Final = 60.0
# PostgreSQL's clock is right, and a node whose clock differs by more than a second does not join.
_MOST_SKEW_SECONDS: Final = 0.9
# Commits of unknown outcome are repeated for 30 s.
_OUTAGE_SECONDS: Final = 31.0
_NO_OUTAGE: Final = 0.85
_NO_WRONG_CLOCK: Final = 0.7
_SETTLING_SECONDS: Final = 15.0
_DAY_SECONDS: Final = 24 * 60 * 60.0
# The first bytes of the rows of a table that only its home writes.
_ITEM: Final = key_layout.row_prefix(0)[:1]
# Log events of faults that no test plays.
_BUGS: Final = frozenset(
    (
        "actor_crashed",
        "background_work_failed",
        "request_crashed",
        "older_log_detected",
    )
)


class Outcome(Struct, frozen=True):
    """The result of a run. ``digest`` is that of the trace: equal seeds have equal digests."""

    seed: int
    violations: list[str]
    digest: str
    operations: int
    acknowledged: int
    simulated_seconds: float
    statements: int


class Trace:
    """Everything that a run does, in its order."""

    def __init__(self, *, keeps_lines: bool) -> None:
        self.lines: list[str] = []
        self.count = 0
        self._keeps_lines = keeps_lines
        self._digest = sha256()

    def add(self, line: str) -> None:
        """Append a line."""
        self.count += 1
        self._digest.update(line.encode())
        if self._keeps_lines:
            self.lines.append(line)

    @property
    def digest(self) -> str:
        """The digest of all lines."""
        return self._digest.hexdigest()


def run_seed(seed: int, trace: Trace, operations: int | None = None) -> Outcome:
    """Run a seed in this process, which has to end afterwards: killed nodes are not cleaned up."""
    loop = SimulatedLoop(seed)
    run = _Run(seed, loop, trace, operations)
    loop.set_exception_handler(run.note_failure)
    asyncio.set_event_loop(loop)
    with _deterministic(loop, seed, run.skew):
        try:
            found = loop.run_until_complete(run.main())
        except Exception:  # noqa: BLE001 - any failure of a run is reported with its seed
            found = [*run.found, traceback.format_exc()]
    workload = run.workload
    return Outcome(
        seed,
        found,
        trace.digest,
        workload.started if workload else 0,
        workload.acknowledged if workload else 0,
        loop.time(),
        trace.count,
    )


@contextmanager
def _deterministic(loop: SimulatedLoop, seed: int, skew: Callable[[], float]) -> Iterator[None]:
    """Replace clocks and the machine's randomness within the context."""
    bytes_of = Random(seed + 1).randbytes
    start = _START_EPOCH_SECONDS - Random(seed + 2).random() * _MOST_EARLY_SECONDS

    def now() -> float:
        return start + loop.time() + skew()

    def running() -> SimulatedLoop:
        return loop

    with (
        patch.object(time, "time", now),
        patch.object(os, "urandom", bytes_of),
        patch.object(random, "_urandom", bytes_of),
        patch.object(partition, "perf_counter", loop.time),
        # Each call of the original asks the operating system for the process's number.
        patch.object(asyncio, "get_running_loop", running),
        patch.object(asyncio.events, "get_running_loop", running),
        patch.object(anyio_asyncio, "get_running_loop", running),
    ):
        yield


def _is_of_store(error: BaseException) -> bool:
    """Whether an actor crashed only because the store can't be used."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_of_store, error.exceptions))
    return isinstance(error, StoreError)


class _Run:
    def __init__(
        self, seed: int, loop: SimulatedLoop, trace: Trace, operations: int | None
    ) -> None:
        self._operations = operations
        self.workload: Workload | None = None
        self._seed = seed
        self._loop = loop
        self._trace = trace
        self._draw = Random(seed)
        self._skews: dict[int, float] = {}
        self._found: list[str] = []
        self._cluster: Cluster | None = None
        self._logs = CommittedLogs()
        # Whether records are deleted from streams while the clients run.
        self._is_trimmed = False
        # The node whose clock has been wrong for so long that it must not write any items.
        self._wrong_node = ""
        # Whether no other faults begin, because of a long one.
        self._is_quiet = False
        # The names of tables by id, from their records.
        self._names: dict[int, str] = {}

    def skew(self) -> float:
        """The error of the clock of the node that runs now."""
        return self._skews.get(NODE.get(), 0.0)

    def note_failure(self, _: object, context: dict[str, Any]) -> None:
        """Record an exception that no task has caught."""
        error = context.get("exception")
        shown = "".join(traceback.format_exception(error)) if error else ""
        self._found.append(f"{context['message']}: {shown}")

    @property
    def found(self) -> list[str]:
        """The violations so far."""
        if self._cluster is None:
            return self._found
        return [*self._found, *self._availability.violations, *self._cluster.violations]

    async def main(self) -> list[str]:
        draw = self._draw
        self._server = FakePostgresql(self._check_commit)
        network = Network(self._server, Random(draw.random()))
        network.trace = self._trace_line
        cluster = self._cluster = Cluster(network, Random(draw.random()), self._seed)
        self._availability = Availability(cluster)
        cluster.heard = self._availability.note
        network.name_of = cluster.name_of
        structlog.configure(processors=[self._hear], cache_logger_on_first_use=False)
        nodes = draw.choice((3, 3, 4, 5))
        skew_draw = Random(draw.random())
        self._skews = {
            queue: (2 * skew_draw.random() - 1) * _MOST_SKEW_SECONDS for queue in range(1, 200)
        }
        workload = self.workload = Workload(
            cluster, Random(draw.random()), self._operations or draw.randrange(300, 501)
        )
        readers = self._stream_readers(Random(self._seed + 3))
        self._publish(Random(self._seed + 4))
        with replacing_connections(network):
            with anyio.fail_after(120):
                async with running_cluster(cluster, nodes):
                    await workload.prepare()
            async with asyncio.TaskGroup() as tasks:
                clients = tasks.create_task(workload.run())
                faults = [tasks.create_task(self._faults(Random(draw.random())))]
                if cluster.kafka is not None:
                    of_kafka = self._faults_of_kafka(cluster.kafka, Random(self._seed + 5))
                    faults.append(tasks.create_task(of_kafka))
                faults.append(tasks.create_task(self._long_fault(nodes, Random(self._seed + 6))))
                faults.append(tasks.create_task(watch_doubts(cluster)))
                makers = [
                    tasks.create_task(TableMaker(workload, name, Random(draw.random())).run())
                    for name in PASSING
                    if draw.random() < 0.5
                ]
                if draw.random() < 0.3:
                    restoring = restore_accounts(workload, Random(draw.random()))
                    makers.append(tasks.create_task(restoring))
                if draw.random() < 0.5:
                    splitting = split_partitions(cluster, workload, Random(draw.random()))
                    makers.append(tasks.create_task(splitting))
                makers += [tasks.create_task(reader.run()) for reader in readers]
                await clients
                for maker in makers:
                    await maker
                for fault in faults:
                    fault.cancel()
            await self._recover(nodes)
            logs = self._logs if self._is_trimmed else None
            found = await violations(cluster, workload, readers, logs)
            if cluster.kafka is not None:
                for table in workload.published:
                    found += await topic_violations(cluster.kafka, self._logs, table)
            return [*self._found, *self._availability.violations, *found]

    def _trace_line(self, line: str) -> None:
        self._availability.observe()
        self._trace.add(f"{self._loop.time():.6f} {line}")

    def _stream_readers(self, draw: Random) -> list[StreamReader]:
        """Readers of streams in half of the runs. In half of these, logs are trimmed soon."""
        if draw.random() < 0.5:
            return []
        cluster, workload = self._cluster, self.workload
        assert cluster is not None
        assert workload is not None
        self._is_trimmed = draw.random() < 0.5
        retention_seconds = draw.choice((4.0, 8.0)) if self._is_trimmed else _DAY_SECONDS
        cluster.streams = ShardSettings(draw.choice((3.0, 8.0)), retention_seconds)
        cluster.keep_streams_seconds = draw.choice((0.3, 2.0))
        if self._is_trimmed:
            # Between two statements of a reader, a log may be trimmed.
            cluster.network.late_seconds = draw.choice((0.0, 0.1))
        # The readers of a small cache mostly read from PostgreSQL.
        cache = partial(RecentChanges, draw.choice((1_000, 1_000, 1 << 20)))
        patch.object(database, "RecentChanges", cache).start()
        return [
            StreamReader(workload, self._logs, table, retention_seconds, Random(draw.random()))
            for table in draw.sample(TABLES, draw.choice((1, 2)))
        ]

    def _publish(self, draw: Random) -> None:
        """Publish some tables to Kafka in some of the runs."""
        cluster, workload = self._cluster, self.workload
        assert cluster is not None
        assert workload is not None
        if draw.random() < 0.6:
            return
        cluster.kafka = KafkaNetwork(Random(draw.random()))
        cluster.kafka.trace = cluster.network.trace
        workload.published = draw.sample(TABLES, draw.choice((1, 2)))

    def _hear(self, _: object, level: str, event: MutableMapping[str, Any]) -> str:
        name = event["event"]
        error = event.get("exc_info")
        told = {key: value for key, value in event.items() if key != "exc_info"}
        self._trace.add(f"{self._loop.time():.6f} {level} {NODE.get()} {told}")
        if name in _BUGS:
            failure = sys.exception() if error is True else error
            if failure is None or not _is_of_store(failure):
                shown = "".join(traceback.format_exception(failure)) if failure else ""
                self._found.append(f"{told} {shown}")
        raise structlog.DropEvent

    # -- faults -------------------------------------------------------------------------------

    async def _faults(self, draw: Random) -> None:
        """Play faults until the task is canceled."""
        network, cluster = self._cluster.network, self._cluster
        network.breaks = draw.choice((0.0, 0.001, 0.01))
        network.slow = draw.choice((0.0, 0.01, 0.05))
        if draw.random() < 0.5:
            pause_draw = Random(draw.random())
            self._server.pause = lambda: (
                pause_draw.random() / 2 if pause_draw.random() < 0.05 else 0.0
            )
        while True:
            await anyio.sleep(draw.random() * 3)
            up = [each.number for each in cluster.up() if not each.is_suspended]
            if len(up) < 2 or self._is_quiet:
                continue
            number = draw.choice(up)
            fault = draw.choice(("kill", "kill", "leave", "pause", "cut", "store", "machine"))
            self._trace.add(f"{self._loop.time():.6f} {fault} {number}")
            seconds = draw.random() * 10
            await self._play(fault, number, seconds, draw)

    async def _long_fault(self, nodes: int, draw: Random) -> None:
        """Play an outage of PostgreSQL in some of the runs, and a wrong clock in others."""
        drawn = draw.random()
        if drawn >= _NO_OUTAGE:
            await self._outage(nodes, draw)
        elif drawn >= _NO_WRONG_CLOCK:
            await self._wrong_clock(draw)

    async def _wrong_clock(self, draw: Random) -> None:
        """Let the clock of a node be wrong for some time: meanwhile it is no home of any table."""
        await anyio.sleep(draw.random() * 20)
        self._is_quiet = True
        # Other faults end meanwhile.
        await anyio.sleep(_SETTLING_SECONDS)
        process = draw.choice(self._cluster.up())
        usual = self._skews[process.queue]
        self._skews[process.queue] = draw.choice((-1, 1)) * (1.2 + draw.random() * 2)
        self._trace.add(f"{self._loop.time():.6f} wrong clock {process.name}")
        await anyio.sleep(_SETTLING_SECONDS)
        self._wrong_node = process.name
        await anyio.sleep(_SETTLING_SECONDS)
        self._wrong_node = ""
        self._skews[process.queue] = usual
        await anyio.sleep(_SETTLING_SECONDS)
        membership = None if process.node is None else process.node.membership
        if process.is_up and membership and not (membership.share or membership.epoch):
            self._found.append(f"{process.name} takes no tables although its clock is right again")
        self._is_quiet = False

    async def _outage(self, nodes: int, draw: Random) -> None:
        """Cut all nodes off from PostgreSQL until their commits give up.

        No node can take over meanwhile, so homes remain homes with commits in doubt. Other faults
        would soon end the homes, and the doubts with them.
        """
        network = self._cluster.network
        names = [f"n{number}" for number in range(1, nodes + 1)]
        await anyio.sleep(draw.random() * 20)
        self._trace.add(f"{self._loop.time():.6f} outage")
        self._is_quiet = True
        for name in names:
            network.cut.setdefault(name, [])
            network.break_all(name)
        await anyio.sleep(_OUTAGE_SECONDS + draw.random() * 8)
        for name in names:
            network.heal(name)
        await anyio.sleep(2 * MOST_DOUBT_SECONDS)
        self._is_quiet = False

    async def _faults_of_kafka(self, kafka: KafkaNetwork, draw: Random) -> None:
        """Cut nodes off from Kafka, until the task is canceled."""
        kafka.breaks = draw.choice((0.0, 0.01, 0.05))
        kafka.slow = draw.choice((0.0, 0.02, 0.1))
        while True:
            await anyio.sleep(draw.random() * 6)
            node = f"n{draw.choice((1, 2, 3, 4, 5))}"
            kafka.cut_off(node)
            await anyio.sleep(draw.random() * 6)
            kafka.heal(node)

    async def _play(self, fault: str, number: int, seconds: float, draw: Random) -> None:
        cluster, network = self._cluster, self._cluster.network
        name = f"n{number}"
        match fault:
            case "kill" | "machine":
                cluster.kill(number, is_machine=fault == "machine")
                self._loop.call_later(seconds, self._restart, number)
            case "leave":
                with anyio.move_on_after(30):
                    await cluster.leave(number)
                self._loop.call_later(seconds, self._restart, number)
            case "pause":
                process = cluster.processes[number]
                cluster.suspend(number)
                await anyio.sleep(seconds)
                if cluster.processes.get(number) is process:
                    cluster.resume(number)
            case "cut":
                other = f"n{draw.choice([each for each in cluster.processes if each != number])}"
                cluster.cut_off(name, other)
                await anyio.sleep(seconds)
                cluster.heal(name, other)
            case "store":
                if draw.random() < 0.5:
                    # The node does not learn the outcome of its commits in flight until it is back.
                    network.break_all(name)
                network.cut.setdefault(name, [])
                await anyio.sleep(seconds)
                if not self._is_quiet:
                    network.heal(name)

    def _restart(self, number: int) -> None:
        if number not in self._cluster.processes:
            self._cluster.start(number)

    async def _recover(self, nodes: int) -> None:
        """End all faults."""
        cluster, network = self._cluster, self._cluster.network
        network.breaks = network.slow = network.late_seconds = 0.0
        if cluster.kafka is not None:
            cluster.kafka.breaks = cluster.kafka.slow = 0.0
            cluster.kafka.heal()
        self._server.pause = lambda: 0.0
        for name in list(network.cut):
            network.heal(name)
        for one, other in list(cluster.cuts):
            cluster.heal(one, other)
        for process in list(cluster.processes.values()):
            cluster.resume(process.number)
            if process.is_leaving:
                process.stop.set()
        await anyio.sleep(12)
        for number in range(1, nodes + 1):
            self._restart(number)
        with anyio.move_on_after(60):
            while len(cluster.up()) < nodes:
                await anyio.sleep(0.1)
            return
        missing = {f"n{number}" for number in range(1, nodes + 1)}
        missing -= {each.name for each in cluster.up()}
        self._found.append(f"these nodes are not ready again: {sorted(missing)}")

    # -- homes --------------------------------------------------------------------------------

    def _check_commit(self, commit: Commit) -> None:
        """Keep the changes. Only the home of a table writes its items."""
        self._logs.note(commit)
        server = self._server
        ids = {key_layout.table_and_index(key)[0] for key in commit.rows if key[:1] == _ITEM}
        if not ids:
            return
        slot = next((each for each, epoch in server.epochs.items() if epoch == commit.epoch), 0)
        session = server.locks.get(slot)
        if self._wrong_node and session is not None and session.node == self._wrong_node:
            self._found.append(f"{self._wrong_node} writes items although its clock is wrong")
        for table_id in ids:
            name = self._name(table_id)
            if name is None:
                continue
            stored = server.values.get(key_layout.claim(name))
            claimed = decode_claim(stored).epoch if stored else 0
            # A claim of an ended share has no effect.
            home = claimed >> SLOT_SHIFT if claimed in server.epochs.values() else LEADER_SLOT
            if home != slot:
                self._found.append(f"slot {slot} writes {name}, whose home is slot {home}")

    def _name(self, table_id: int) -> str | None:
        if table_id not in self._names:
            for key in self._server.keys_between(*key_layout.TABLE_RECORDS):
                definition = decode_record(self._server.values[key]).definition
                self._names[definition.table_id] = definition.name
        return self._names.get(table_id)

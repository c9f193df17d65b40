"""Three nodes share the tables, and nothing acknowledged is lost when homes fail.

``--rounds 20`` runs 20 rounds with more faults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPException
from random import Random
from time import monotonic, sleep
from typing import Any, Final

import pytest

from tests.postgresql.writer_threads import WRITERS, WriterThreads
from tests.support.clients.clients import AUTHORIZATION, STREAMS_TARGET_PREFIX, WireClient
from tests.support.servers.cluster import Cluster, running_cluster
from tests.support.servers.postgresql import Postgresql
from tests.support.streams.streams import images, records_of
from tests.support.tables.tables import definition, global_index

TABLES: Final = ("ta1", "tb1", "tc1", "td1", "te1", "tf1")
# The tables that are used in transactions.
TOGETHER: Final = TABLES[:2]
INDEX: Final = "ByGroup"
FEW_WRITES: Final = 60
OK: Final = 200


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a round for each seed."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--rounds") or 1))


def test_nothing_is_lost_when_homes_are_killed_suspended_and_restarted(
    postgresql: Postgresql, seed: int, rounds: int | None
) -> None:
    draw = Random(seed)
    with running_cluster(postgresql.url()) as cluster:
        make_tables(cluster)
        wait_spread(cluster)
        leader = cluster.home()
        other = (leader + 1) % len(cluster.ports)
        with writing(cluster, draw) as writers:
            writers.wait_writes(FEW_WRITES)
            fault(cluster, writers, other, "kill")
            fault(cluster, writers, leader, "kill")
            fault(cluster, writers, other, "stop")
            for _ in range(0 if rounds is None else 8):
                number = draw.randrange(len(cluster.ports))
                fault(cluster, writers, number, draw.choice(("kill", "stop", "pause")))
        assert writers.surprises == []
        with closing(WireClient(cluster.endpoints[draw.randrange(len(cluster.ports))])) as wire:
            assert wire("ListTables", {})["TableNames"] == list(TABLES)
            for table in TABLES:
                items = scan(wire, table)
                writers.check(table, items)
                wait_index(wire, table, items)
                check_stream(wire, table, items)
        assert "Traceback" not in cluster.log, cluster.log


def test_each_node_answers_requests_for_temporary_credentials(postgresql: Postgresql) -> None:
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Authorization": AUTHORIZATION.replace("/dynamodb/", "/sts/"),
    }
    form = "Action=GetCallerIdentity&Version=2011-06-15"
    with running_cluster(postgresql.url()) as cluster:
        for endpoint in cluster.endpoints:
            with closing(WireClient(endpoint)) as wire:
                answer = wire.request("POST", "/", form, headers)
                assert (answer.status, b":root</Arn>" in answer.body) == (OK, True), answer


def make_tables(cluster: Cluster) -> None:
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    members: dict[str, Any] = {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [global_index(INDEX, "group")],
        "StreamSpecification": stream,
    }
    with closing(WireClient(cluster.endpoints[0])) as wire:
        for table in TABLES:
            wire("CreateTable", definition("pk:S", "group:S", name=table, **members))


def wait_spread(cluster: Cluster) -> None:
    """Wait until each node but the leader has been given two tables."""
    ends_at = monotonic() + 60
    while sum(each["tables"] == 2 for each in cluster.state(0)["members"]) < 2:
        assert monotonic() < ends_at
        sleep(0.1)


def fault(cluster: Cluster, writers: Writers, number: int, kind: str) -> None:
    """Let a fault happen to a node, and wait until others and the node itself answer again."""
    writers.down.add(number)
    if kind == "pause":
        cluster.pause(number)
    elif kind == "kill":
        cluster.kill(number)
    else:
        assert cluster.stop(number) == 0
    wait_served(cluster, (number + 1) % len(cluster.ports))
    if kind == "pause":
        cluster.resume(number)
        cluster.home()
    else:
        cluster.start(number)
    writers.down.discard(number)
    writers.wait_writes(FEW_WRITES)


def wait_served(cluster: Cluster, number: int) -> None:
    """Wait until a node answers writes to all tables."""
    ends_at = monotonic() + 30
    with closing(WireClient(cluster.endpoints[number])) as wire:
        for table in TABLES:
            while wire.send("UpdateItem", update(table, "probe", 0)).status != OK:
                assert monotonic() < ends_at, table


class Writers(WriterThreads):
    """Threads that count in items of all tables, by single writes and by transactions.

    A write whose outcome is unknown may be there or not.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.down: set[int] = set()
        self.surprises: list[bytes] = []
        self._cluster = cluster
        self._written: Counter[tuple[str, str]] = Counter()
        self._unknown: Counter[tuple[str, str]] = Counter()

    def wait_writes(self, number: int) -> None:
        """Wait until the tables together have about this number of further acknowledged writes."""
        ends_at = monotonic() + 60
        with self.changed:
            before = self._by_table()
            while any(
                self._by_table()[table] < before[table] + number / len(TABLES) for table in TABLES
            ):
                assert monotonic() < ends_at, (before, self._by_table())
                self.changed.wait(1)

    def check(self, table: str, items: dict[str, Any]) -> None:
        """Check that the items have all acknowledged writes, and no others."""
        for (of_table, key), written in self._written.items():
            if of_table == table:
                count = int(items[key]["count"]["N"])
                assert written <= count <= written + self._unknown[table, key], (table, key)

    def _by_table(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for (table, _), written in self._written.items():
            found[table] += written
        return found

    def write(self, draw: Random) -> None:
        """Write until the writers are stopped."""
        while not self.is_stopping:
            numbers = [each for each in list(self._cluster.servers) if each not in self.down]
            keys = [(draw.choice(TABLES), f"{draw.randrange(20)}")]
            if draw.random() < 0.1:
                keys = [(table, f"{draw.randrange(20)}") for table in TOGETHER]
            updates = [update(table, key, draw.randrange(4)) for table, key in keys]
            status, body = 0, b""
            try:
                with closing(WireClient(self._cluster.endpoints[draw.choice(numbers)])) as wire:
                    if len(updates) == 1:
                        answer = wire.send("UpdateItem", updates[0])
                    else:
                        items = [{"Update": each} for each in updates]
                        answer = wire.send("TransactWriteItems", {"TransactItems": items})
                    status, body = answer.status, answer.body
            except (HTTPException, OSError):
                # The node was killed or suspended.
                pass
            with self.changed:
                (self._written if status == OK else self._unknown).update(keys)
                if status == 400 and b"Transaction" not in body:
                    self.surprises.append(body)
                self.changed.notify_all()


def update(table: str, key: str, group: int) -> dict[str, Any]:
    return {
        "TableName": table,
        "Key": {"pk": {"S": key}},
        "UpdateExpression": "ADD #count :one SET #group = :group",
        "ExpressionAttributeNames": {"#count": "count", "#group": "group"},
        "ExpressionAttributeValues": {":one": {"N": "1"}, ":group": {"S": f"{group}"}},
    }


@contextmanager
def writing(cluster: Cluster, draw: Random) -> Iterator[Writers]:
    """Writers that run within the context."""
    writers = Writers(cluster)
    draws = [Random(draw.random()) for _ in range(WRITERS)]
    with writers.running(*(partial(writers.write, each) for each in draws)):
        yield writers


def scan(wire: WireClient, table: str, **members: Any) -> dict[str, Any]:
    request = {"TableName": table, "ConsistentRead": not members, **members}
    return {item["pk"]["S"]: item for item in wire("Scan", request)["Items"]}


def wait_index(wire: WireClient, table: str, items: dict[str, Any]) -> None:
    """Wait until an index has the table's items."""
    ends_at = monotonic() + 30
    while (found := scan(wire, table, IndexName=INDEX)) != items:
        assert monotonic() < ends_at, (table, found, items)
        sleep(0.1)


def check_stream(wire: WireClient, table: str, items: dict[str, Any]) -> None:
    """Check that the stream's records, one after another, lead to the table's items."""
    state: dict[str, Any] = {}
    with closing(WireClient(f"http://{wire.host}:{wire.port}", STREAMS_TARGET_PREFIX)) as streams:
        (stream,) = streams("ListStreams", {"TableName": table})["Streams"]
        for _, old, new in images(records_of(streams, stream["StreamArn"])):
            key = new["pk"]["S"]
            assert state.get(key) == old, (table, key)
            state[key] = new
    assert state == items

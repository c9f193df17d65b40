"""Three nodes on one PostgreSQL: nothing acknowledged is lost when the home fails or restarts.

``--rounds 20`` runs 20 longer histories, half of them with transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stdout
from functools import partial
from io import StringIO
from time import monotonic
from typing import Any, Final

import boto3
import pytest
from botocore.config import Config
from prometheus_client.parser import text_string_to_metric_families

from dynactor.api.commands.nodes import NodesOptions, nodes
from dynactor.api.commands.server_address import ServerAddress
from tests.postgresql.writer_threads import WRITERS, WriterThreads
from tests.support.clients.clients import SDK_ARGUMENTS, WireClient
from tests.support.histories import history, history_serial
from tests.support.histories.history_bank import TOTAL, BankClients
from tests.support.histories.history_cluster import ClusterFault, HistoryCluster
from tests.support.histories.history_registers import RegisterClients
from tests.support.servers.cluster import NODE_METRICS, Cluster
from tests.support.servers.load_balancer import balanced
from tests.support.servers.postgresql import Postgresql
from tests.support.tables.tables import definition

FEW_FAULTS: Final[list[ClusterFault]] = ["kill", "pause"]
FAULTS: Final[list[ClusterFault]] = ["kill", "pause", "stop"]
FEW_OPERATIONS: Final = 400
MANY_OPERATIONS: Final = 3_000
TABLE: Final = "Threads"
FEW_WRITES: Final = 20


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a history for each seed."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--rounds") or 1))


async def test_nothing_is_lost_when_the_home_fails_and_a_rolling_restart_fails_nothing(
    postgresql: Postgresql, seed: int, rounds: int | None
) -> None:
    enough = FEW_OPERATIONS if rounds is None else MANY_OPERATIONS
    faults = FEW_FAULTS if rounds is None else FAULTS[seed % 3 :] + FAULTS[: seed % 3]
    server = HistoryCluster(postgresql.url(), seed, faults)
    clients: RegisterClients | BankClients
    if seed % 2:
        clients = BankClients(server, enough, hot_share=0.2)
    else:
        clients = RegisterClients(server, enough, hot_share=0.25)
    moments = [enough * (number + 1) // (len(faults) + 1) for number in range(len(faults))]
    with server.running():
        check_admin_ports(server.cluster)
        await clients.run(moments)
        assert "Traceback" not in server.cluster.log, server.cluster.log
        await asyncio.to_thread(restart_all, server.cluster)
    if isinstance(clients, BankClients):
        assert [str(anomaly) for anomaly in history_serial.check(clients.history)] == []
        assert set(clients.totals) == {TOTAL}
    else:
        assert [str(violation) for violation in history.check(clients.history)] == []
    assert (server.kills, server.timeouts) == (len(faults), 0)


def check_admin_ports(cluster: Cluster) -> None:
    """Every node answers for itself; what only the home has is at the home."""
    home = cluster.home()
    other = (home + 1) % len(cluster.ports)
    while len(cluster.state(other)["members"]) < len(cluster.ports):
        continue
    assert cluster.ask(home, "/ready").body == b"ready\n"
    assert cluster.ask(other, "/ready").body == b"ready: requests are forwarded to n%d\n" % home
    assert cluster.ask(other, "/health").status == 200
    refused = cluster.ask(other, "/insights?table=t")
    assert refused.status == 503
    assert f"send this request to n{home}" in refused.json["message"]
    shown = text_string_to_metric_families(cluster.ask(other, "/metrics").body.decode())
    values = {family.name: family.samples for family in shown}
    assert values["dynactor_node_is_home"][0].value == 0
    assert values["dynactor_node_members"][0].value == len(cluster.ports)
    assert {name for name in NODE_METRICS if name.removesuffix("_total") not in values} == set()
    assert [member["name"] for member in cluster.state(other)["members"]] == ["n0", "n1", "n2"]
    address = ServerAddress(admin_endpoint=f"http://127.0.0.1:{cluster.admin_port(other)}")
    output = StringIO()
    with redirect_stdout(output):
        assert nodes(NodesOptions(server=address)) == 0
    lines = output.getvalue().splitlines()
    assert lines[0].split() == ["NODE", "ADDRESS", "VERSION", "STATE"]
    assert lines[1 + home].endswith("  leader")
    assert lines[-1] == f"Seen by n{other}: the leader is n{home}, epoch 1"


def restart_all(cluster: Cluster) -> None:
    """Restart the nodes one after another. No request of an SDK fails meanwhile."""
    with balanced(cluster.ports) as endpoint:
        with sdk_writers(endpoint) as writers:
            for number in range(len(cluster.ports)):
                writers.wait_writes(FEW_WRITES)
                assert cluster.stop(number) == 0
                writers.wait_writes(FEW_WRITES)
                cluster.start(number)
            writers.wait_writes(FEW_WRITES)
        assert writers.failures == []
        assert writers.missing() == []


def make_table(endpoint: str) -> None:
    with closing(WireClient(endpoint)) as wire:
        wire("CreateTable", definition("pk:S", name=TABLE))


class SdkWriters(WriterThreads):
    """Threads that put items by boto3 with its standard retries."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self.failures: list[str] = []
        self._endpoint = endpoint
        self._written: list[str] = []

    def wait_writes(self, number: int) -> None:
        """Wait until ``number`` more writes are acknowledged, or one has failed."""
        ends_at = monotonic() + 60
        with self.changed:
            enough = len(self._written) + number
            while len(self._written) < enough and not self.failures and monotonic() < ends_at:
                self.changed.wait(1)

    def missing(self) -> list[str]:
        """The acknowledged items that are not there."""
        with closing(self._client()) as client:
            pages = client.get_paginator("scan").paginate(TableName=TABLE)
            found = {item["pk"]["S"] for page in pages for item in page["Items"]}
        return sorted(set(self._written) - found)

    def _client(self) -> Any:
        config = Config(retries={"mode": "standard"})
        return boto3.client("dynamodb", endpoint_url=self._endpoint, config=config, **SDK_ARGUMENTS)

    def write(self, writer: int) -> None:
        """Put items until the writers are stopped."""
        with closing(self._client()) as client:
            number = 0
            while not self.is_stopping:
                number += 1
                key = f"{writer}.{number}"
                try:
                    client.put_item(TableName=TABLE, Item={"pk": {"S": key}})
                except Exception as error:  # noqa: BLE001 - any error is a failure of the test
                    self.failures.append(repr(error))
                with self.changed:
                    self._written.append(key)
                    self.changed.notify_all()


@contextmanager
def sdk_writers(endpoint: str) -> Iterator[SdkWriters]:
    """Writers that run within the context."""
    make_table(endpoint)
    writers = SdkWriters(endpoint)
    with writers.running(*(partial(writers.write, number) for number in range(WRITERS))):
        yield writers

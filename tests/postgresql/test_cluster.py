"""Three nodes on one PostgreSQL: nothing acknowledged is lost when the home fails or restarts.

``--rounds 200`` runs 200 longer histories. Half of them have transactions, and half have faults.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, closing, redirect_stdout
from io import StringIO
from random import Random
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dynactor.api.clients.server_address import ServerAddress
from dynactor.api.commands.nodes import NodesOptions, nodes
from tests.support.clients.clients import AUTHORIZATION, WireClient
from tests.support.histories import history, history_serial
from tests.support.histories.history_bank import TOTAL, BankClients
from tests.support.histories.history_cluster import ClusterFault, HistoryCluster
from tests.support.histories.history_registers import RegisterClients
from tests.support.kafka.kafka_server import partition_counts
from tests.support.servers.cluster import NODE_METRICS, Cluster, running_cluster
from tests.support.servers.load_balancer import balanced
from tests.support.servers.postgresql import Postgresql
from tests.support.tables.tables import table
from tests.support.writers.sdk_writers import sdk_writers

FEW_FAULTS: Final[list[ClusterFault]] = ["kill", "pause"]
FAULTS: Final[list[ClusterFault]] = ["kill", "pause", "stop", "cut"]
FEW_OPERATIONS: Final = 400
MANY_OPERATIONS: Final = 1_500
FEW_WRITES: Final = 20


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a history for each seed."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--rounds") or 1))


async def test_nothing_is_lost_when_the_home_fails_and_a_rolling_restart_fails_nothing(
    postgresql: Postgresql, seed: int, rounds: int | None
) -> None:
    enough = FEW_OPERATIONS if rounds is None else MANY_OPERATIONS
    faults = FEW_FAULTS
    if rounds is not None:
        faults = Random(seed).sample(FAULTS, 2) if seed % 4 < 2 else []
    server = HistoryCluster(postgresql.url(), seed, faults)
    clients: RegisterClients | BankClients
    if seed % 2:
        clients = BankClients(server, enough, hot_share=0.2)
    else:
        clients = RegisterClients(server, enough, hot_share=0.25)
    moments = [enough * (number + 1) // (len(faults) + 1) for number in range(len(faults))]
    with server.running():
        if rounds is None:
            check_admin_ports(server.cluster)
        await clients.run(moments)
        assert "Traceback" not in server.cluster.log, server.cluster.log
        if rounds is None:
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
    check_tables_of_other_nodes(cluster, home)
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
        nodes(NodesOptions(server=address))
    lines = output.getvalue().splitlines()
    assert lines[0].split() == ["NODE", "ADDRESS", "VERSION", "STATE"]
    assert lines[1 + home].endswith("  leader")
    assert lines[-1] == f"Seen by n{other}: the leader is n{home}, epoch 1"


def check_tables_of_other_nodes(cluster: Cluster, leader: int) -> None:
    """The leader asks the homes of tables for insights, and recalls a table for a replay."""
    server = cluster.servers[leader]
    with closing(WireClient(cluster.endpoints[leader])) as call, ExitStack() as stack:
        tables = {stack.enter_context(table(call, "pk:S")) for _ in range(3)}
        while not (elsewhere := tables - partition_counts(server).keys()):
            continue
        for name in tables:
            shown = cluster.ask(leader, f"/insights?table={name}")
            assert (shown.status, shown.json["table"]) == (200, name)
        name = min(elsewhere)
        assert cluster.ask(leader, f"/insights?table={name}&index=missing").status == 404
        body = {"table": name, "from": "snapshot", "to_topic": "copy"}
        refused = cluster.ask(leader, "/replays", "POST", body)
        assert refused.status == 400
        assert "started without --kafka-bootstrap-servers" in refused.json["message"]
        assert name in partition_counts(server)


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
                assert (answer.status, b":root</Arn>" in answer.body) == (200, True), answer

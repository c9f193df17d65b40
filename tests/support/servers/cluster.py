"""Nodes of a cluster in processes of their own: ``python -m tests.support.servers.cluster``.

The command starts PostgreSQL and three nodes, and ends them with Ctrl-C.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.clients.clients import WireClient
from tests.support.environment.unused_ports import is_unused, unused_ports
from tests.support.servers.admin import ask
from tests.support.servers.peer_network import PeerNetwork
from tests.support.servers.postgresql import NoPostgresql, running_postgresql
from tests.support.servers.server import Server, running

NODES: Final = 3
# The metrics that only nodes have.
NODE_METRICS: Final = {
    "dynactor_forwarded_requests_total",
    "dynactor_forwarding_failures_total",
    "dynactor_node_clock_ahead_seconds",
    "dynactor_node_homes_taken_total",
    "dynactor_node_is_home",
    "dynactor_node_members",
}
_FIRST_PORT: Final = 8000
_METRICS: Final = re.compile(r"Metrics on http://127\.0\.0\.1:(\d+)/")


class Cluster:
    """Nodes by number. A node that is started again has the same addresses."""

    def __init__(
        self,
        store_url: str,
        ports: list[int] | None = None,
        *,
        module: str = "dynactor",
        environment: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = (),
    ) -> None:
        self.store_url = store_url
        self.ports = ports or unused_ports(NODES)
        self.peer_ports = unused_ports(len(self.ports))
        # The network that the nodes reach each other by; None if they connect directly.
        self.network: PeerNetwork | None = None
        self._module = module
        self._environment = environment
        self._arguments = arguments
        self.servers: dict[int, Server] = {}
        self._lives: dict[int, ExitStack] = {}

    @property
    def endpoints(self) -> list[str]:
        """The addresses of all nodes for clients, of nodes that are down, too."""
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    @property
    def log(self) -> str:
        """The logs of the running nodes."""
        return "".join(f"n{number}:\n{each.log}" for number, each in self.servers.items())

    def start(self, number: int) -> Server:
        """Start a node, and wait until it answers."""
        assert number not in self.servers
        command = [
            *(sys.executable, "-m", self._module, "serve"),
            *("--port", str(self.ports[number]), "--admin-port", "0"),
            *("--store", self.store_url),
            *("--peer-listen", f"127.0.0.1:{self.peer_ports[number]}"),
            *("--node-name", f"n{number}"),
            *self._arguments,
        ]
        if self.network is not None:
            command += ["--peer-advertise", f"127.0.0.1:{self.network.ports[number]}"]
        life = ExitStack()
        server = life.enter_context(running(command, environment=self._environment))
        self._lives[number] = life
        self.servers[number] = server
        return server

    def stop(self, number: int) -> int:
        """Stop a node as an operator does; return its exit code."""
        exit_code: int = self._end(number, Server.stop)
        return exit_code

    def kill(self, number: int) -> None:
        """Kill a node without any clean-up."""
        self._end(number, Server.kill)

    def _end(self, number: int, end: Callable[[Server], Any]) -> Any:
        server = self.servers.pop(number)
        try:
            return end(server)
        finally:
            self._lives.pop(number).close()

    def pause(self, number: int) -> None:
        """Suspend a node."""
        self.servers[number].process.send_signal(signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Continue a suspended node."""
        self.servers[number].process.send_signal(signal.SIGCONT)

    def state(self, number: int) -> Any:
        """The cluster as a node sees it."""
        return self.ask(number, "/nodes").json

    def ask(self, number: int, path: str, method: str = "GET", body: Any = None) -> Any:
        """Send a request to a node's admin port."""
        return ask(self.admin_port(number), path, method, body)

    def admin_port(self, number: int) -> int:
        """The admin port of a running node."""
        found = _METRICS.search(self.servers[number].announcement)
        assert found
        return int(found[1])

    def home(self, *, without: int | None = None) -> int:
        """The number of the home; waits until all running nodes agree on a running one.

        The node ``without`` is left out, because it does not answer.
        """
        observers = [number for number in self.servers if number != without]
        while True:
            for number in observers:
                # A node answers this when it knows a home.
                with closing(WireClient(self.endpoints[number])) as wire:
                    wire.send("ListTables", {})
            homes = {self.state(number)["home"] for number in observers}
            if len(homes) == 1 and (home := homes.pop()) is not None:
                number = int(home.removeprefix("n"))
                if number in observers:
                    return number

    def close(self) -> None:
        """Kill all nodes."""
        for number in list(self.servers):
            self.servers[number].process.kill()
            self.servers.pop(number)
            self._lives.pop(number).close()


@contextmanager
def running_cluster(
    store_url: str, *, has_network: bool = False, **options: Any
) -> Iterator[Cluster]:
    """Three nodes on a database, killed at the end if they still run.

    With ``has_network``, the network between them can be cut.
    """
    if has_network:
        cluster = Cluster(store_url, **options)
        with PeerNetwork(cluster.peer_ports).running() as cluster.network:
            yield from _running(cluster)
    else:
        yield from _running(Cluster(store_url, **options))


def _running(cluster: Cluster) -> Iterator[Cluster]:
    try:
        for number in range(len(cluster.ports)):
            cluster.start(number)
        yield cluster
    finally:
        cluster.close()


def _preferred_ports() -> list[int]:
    """The ports from 8000 on if they are free, otherwise any."""
    preferred = range(_FIRST_PORT, _FIRST_PORT + NODES)
    others = unused_ports(NODES)
    return [
        port if is_unused(port) else other for port, other in zip(preferred, others, strict=True)
    ]


def _main() -> None:
    """Run a cluster until Ctrl-C."""
    try:
        with running_postgresql() as postgresql:
            url = postgresql.url("dynactor")
            with running_cluster(url, ports=_preferred_ports()) as cluster:
                # Block the signals only now, because the nodes would inherit the signal mask.
                stop_signals = {signal.SIGINT, signal.SIGTERM}
                signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
                _announce(cluster, Path(sys.executable).with_name("dynactor"))
                signal.sigwait(stop_signals)
    except NoPostgresql as error:
        sys.exit(f"dynactor: {error}")


def _announce(cluster: Cluster, command: Path) -> None:
    lines = []
    for number, server in cluster.servers.items():
        admin = cluster.admin_port(number)
        lines.append(
            f"n{number}  {cluster.endpoints[number]}  admin http://127.0.0.1:{admin}  "
            f"process {server.process.pid}\n"
        )
    admin = cluster.admin_port(0)
    sys.stdout.write(
        "".join(lines)
        + f"Data in {cluster.store_url}\n"
        + f"Show the nodes: {command} nodes --admin-endpoint http://127.0.0.1:{admin}\n"
        + "Kill a node with kill -9 and its process; Ctrl-C ends all and deletes the data\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    _main()

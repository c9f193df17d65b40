"""A real Kafka broker for tests: one that is there, or one started here with Java.

The one that is started here is a single process in KRaft mode, controller included, which can
be stopped, killed, suspended and started again on its port and its data.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final, Protocol
from uuid import uuid4

from tests.support.clients.network import Network
from tests.support.environment.maven_jars import class_path, jars

POM: Final = Path(__file__).parent / "broker.xml"
GIVEN_BROKER: Final = "DYNACTOR_TEST_KAFKA"
LARGEST_MESSAGE_BYTES: Final = 8 * 1024 * 1024
# Compiles little and starts in half of the time; a benchmark runs it without that.
QUICK_START: Final = ("-XX:TieredStopAtLevel=1",)

_START_SECONDS: Final = 120
_STOP_SECONDS: Final = 60
_STARTED: Final = b"Kafka Server started"
# Below the ports that the kernel gives to outgoing connections: a client that keeps on trying to
# reach a stopped broker could be given the broker's own port, and be connected with itself.
_PORTS: Final = range(15_000, 30_000)


class BrokerAddress(Protocol):
    """What a test needs that only talks to a broker."""

    @property
    def bootstrap_servers(self) -> str:
        """``host:port``, or several with commas."""


class GivenBroker:
    """A broker that somebody else runs."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers


class BrokerDidNotStart(AssertionError):
    """The broker ended, or was not ready in time; its log is in the message."""


class KafkaBroker:
    """A broker process, its port and its data.

    Invariant: ``bootstrap_servers`` never changes, and data survives whatever ends the process,
    as far as Kafka keeps it (it does not sync each write: a killed process loses nothing, a power
    cut might).
    """

    def __init__(
        self,
        directory: Path,
        properties: Path,
        bootstrap_servers: str,
        network_ports: tuple[int, int] | None = None,
        java_options: tuple[str, ...] = QUICK_START,
    ) -> None:
        """A broker that does not run yet; its data directory is formatted.

        Its log goes to ``directory``. ``network_ports`` are those of a listener of its own for
        clients behind a network: the network's port, by which it calls itself, and its own.
        """
        self._java_options = java_options
        self.bootstrap_servers = bootstrap_servers
        self._network_ports = network_ports
        self._directory = directory
        self._properties = properties
        self._log_path = directory / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What the broker has written in all its lives."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    @property
    def is_running(self) -> bool:
        """A suspended broker is running, as far as this is concerned."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process, for a test that measures it."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it serves; after a stop or a kill: on the same port and data.

        Raises:
            BrokerDidNotStart: It ended, or took too long.
        """
        assert not self.is_running
        with self._log_path.open("ab") as log:
            before = log.tell()
            self._process = subprocess.Popen(
                kafka_command("kafka.Kafka", str(self._properties), options=self._java_options),
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = monotonic() + _START_SECONDS
        while not self._has_said(_STARTED, before):
            if self._process.poll() is not None or monotonic() > deadline:
                self.kill()
                raise BrokerDidNotStart(self.log)
            sleep(0.05)

    def stop(self) -> None:
        """End it as an operator does; it writes all down and says good-bye to its clients."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once (``kill -9``)."""
        self._end(signal.SIGKILL)

    def suspend(self) -> None:
        """Make it unreachable without ending it: connections stay, and nobody answers on them."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a suspended broker go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def ensure_running(self) -> None:
        """Undo whatever a test did to it."""
        if self.is_running:
            self.resume()
        else:
            self.start()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Down within the context, every connection refused; started again behind it."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Silent within the context, as behind a network that swallows everything."""
        self.suspend()
        try:
            yield
        finally:
            self.resume()

    @contextmanager
    def network(self) -> Iterator[tuple[Network, GivenBroker]]:
        """A network to this broker that a test can break, and the broker as seen through it.

        Who comes by ``bootstrap_servers`` does not use it.
        """
        assert self._network_ports is not None
        with Network(*self._network_ports).running() as network:
            yield network, GivenBroker(f"127.0.0.1:{network.port}")

    def _end(self, signal_number: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal_number)
        # A suspended process gets no signal but SIGKILL until it goes on.
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the broker did not stop\n{self.log}") from None

    def _has_said(self, words: bytes, since_byte: int) -> bool:
        with self._log_path.open("rb") as log:
            log.seek(since_byte)
            return words in log.read()


@contextmanager
def running_broker(
    directory: Path, *, java_options: tuple[str, ...] = QUICK_START, **settings: str
) -> Iterator[KafkaBroker]:
    """A broker of the test's own, with its data in ``directory``; killed at the end.

    ``settings`` are added to its server.properties, ``_`` standing for a dot.

    Raises:
        NotFetched: Its jars are not here and could not be had.
        BrokerDidNotStart: It ended, or took too long.
    """
    port, controller_port, network_port, behind_port = unused_ports(4)
    added = {name.replace("_", "."): value for name, value in settings.items()}
    lines = _properties(directory / "data", controller_port) | added
    lines |= {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},BEHIND://127.0.0.1:{behind_port},"
        f"CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},BEHIND://127.0.0.1:{network_port}",
    }
    properties = directory / "server.properties"
    properties.write_text("".join(f"{name}={lines[name]}\n" for name in lines))
    # A letter first: what begins with a hyphen is taken for an option.
    cluster_id = "A" + urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")[1:]
    format_data = ("format", "--cluster-id", cluster_id, "--config", str(properties))
    run_kafka_tool("kafka.tools.StorageTool", *format_data)
    broker = KafkaBroker(
        directory,
        properties,
        f"127.0.0.1:{port}",
        (network_port, behind_port),
        java_options,
    )
    with started(broker):
        yield broker


@contextmanager
def started(broker: KafkaBroker) -> Iterator[KafkaBroker]:
    """Running within the context, unless the test ends it itself; killed at the end."""
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def kafka_command(
    main_class: str, *arguments: str, options: tuple[str, ...] = QUICK_START
) -> list[str]:
    """What runs a program of Kafka's.

    Raises:
        NotFetched: its jars are not here and could not be had.
    """
    return ["java", "-Xmx512m", *options, "-cp", class_path(jars(POM)), main_class, *arguments]


def run_kafka_tool(main_class: str, *arguments: str, **environment: str) -> None:
    """Run a program of Kafka's to its end; ``environment`` is added to the test's own.

    Raises:
        BrokerDidNotStart: it failed; what it said is in the message.
    """
    done = subprocess.run(
        kafka_command(main_class, *arguments),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BrokerDidNotStart(done.stdout + done.stderr)


def given_broker() -> GivenBroker | None:
    """The broker named by the environment variable DYNACTOR_TEST_KAFKA, as ``host:port``."""
    bootstrap_servers = os.environ.get(GIVEN_BROKER)
    return GivenBroker(bootstrap_servers) if bootstrap_servers else None


def unused_ports(count: int) -> list[int]:
    """Ports of loopback on which nobody listens, and which no outgoing connection is given."""
    found: list[int] = []
    for port in random.sample(_PORTS, k=len(_PORTS)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found


def _properties(data: Path, controller_port: int) -> dict[str, str]:
    largest = str(LARGEST_MESSAGE_BYTES)
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BEHIND:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
        # A topic that nobody created is a mistake of ours: it would get a default partition count.
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        # A killed broker may come back only when the controller has given up its former life.
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "1000",
        "message.max.bytes": largest,
        "replica.fetch.max.bytes": largest,
    }

"""A real Kafka broker for tests: an existing one, or one that this module starts with Java.

A started broker is a single process in KRaft mode, with its controller. A test can stop, kill,
suspend and restart the broker; it keeps its port and its data.
"""

from __future__ import annotations

import os
import signal
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
from tests.support.environment.unused_ports import is_unused, unused_ports

POM: Final = Path(__file__).parent / "broker.xml"
GIVEN_BROKER: Final = "DYNACTOR_TEST_KAFKA"
LARGEST_MESSAGE_BYTES: Final = 8 * 1024 * 1024
# With this option of the JVM the broker starts in half the time. Benchmarks omit it, because it
# limits JIT compilation.
QUICK_START: Final = ("-XX:TieredStopAtLevel=1",)

_START_SECONDS: Final = 120
_STOP_SECONDS: Final = 60
_STARTED: Final = b"Kafka Server started"


class BrokerAddress(Protocol):
    """The address of a broker."""

    @property
    def bootstrap_servers(self) -> str:
        """``host:port``, or several, separated by commas."""


class GivenBroker:
    """A broker that runs outside of the tests."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers


class BrokerDidNotStart(AssertionError):
    """The broker exited, or was not ready in time; the message has its log."""


class KafkaBroker:
    """A broker process, its port and its data.

    Invariant: ``bootstrap_servers`` never changes. Data survives a kill of the process, but maybe
    not a power cut, because Kafka does not sync each write.
    """

    def __init__(
        self,
        directory: Path,
        properties: Path,
        bootstrap_servers: str,
        network_ports: tuple[int, int] | None = None,
        java_options: tuple[str, ...] = QUICK_START,
    ) -> None:
        """Create a broker that does not run yet; its data directory is formatted.

        Its log goes to ``directory``. ``network_ports`` are for a second listener, which clients
        reach through a ``Network``: the network's port, which the broker advertises, and the
        broker's own port.
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
        """The broker's output over all restarts."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    @property
    def is_running(self) -> bool:
        """Whether the process exists; a suspended broker counts as running."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id, for a test that measures the process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the broker and wait until it serves.

        Raises:
            BrokerDidNotStart: the process exited, or took too long.
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
        """Stop the broker as an operator does; it flushes its data and closes its connections."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the broker immediately (``kill -9``)."""
        self._end(signal.SIGKILL)

    def suspend(self) -> None:
        """Suspend the process: connections stay open, but no request is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a suspended broker."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def ensure_running(self) -> None:
        """Resume or restart the broker after a test that suspended or ended it."""
        if self.is_running:
            self.resume()
        else:
            self.start()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the broker within the context, so it refuses connections; restart it afterwards."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the broker within the context, so it behaves like a network that drops all
        packets.
        """
        self.suspend()
        try:
            yield
        finally:
            self.resume()

    @contextmanager
    def network(self) -> Iterator[tuple[Network, GivenBroker]]:
        """A network to this broker that a test can break, and the broker's address behind it.

        Clients that use ``bootstrap_servers`` bypass it.
        """
        assert self._network_ports is not None
        with Network(*self._network_ports).running() as network:
            yield network, GivenBroker(f"127.0.0.1:{network.port}")

    def _end(self, signal_number: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal_number)
        # A suspended process handles no signal except SIGKILL until it is resumed.
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
    directory: Path,
    *,
    preferred_port: int | None = None,
    java_options: tuple[str, ...] = QUICK_START,
    **settings: str,
) -> Iterator[KafkaBroker]:
    """A broker for one test, with its data in ``directory``; it is killed at the end.

    The broker listens on ``preferred_port`` if that port is free. ``settings`` are added to its
    server.properties, with ``_`` instead of dots.

    Raises:
        NotFetched: its jars are not available.
        BrokerDidNotStart: it ended, or took too long.
    """
    port, controller_port, network_port, behind_port = unused_ports(4)
    if preferred_port is not None and is_unused(preferred_port):
        port = preferred_port
    added = {name.replace("_", "."): value for name, value in settings.items()}
    lines = _properties(directory / "data", controller_port) | added
    lines |= {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},BEHIND://127.0.0.1:{behind_port},"
        f"CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},BEHIND://127.0.0.1:{network_port}",
    }
    properties = directory / "server.properties"
    properties.write_text("".join(f"{name}={lines[name]}\n" for name in lines))
    # Start with a letter, because Kafka's tool would read a leading hyphen as an option.
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
    """Start the broker, and kill it at the end of the context if it still runs."""
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def kafka_command(
    main_class: str, *arguments: str, options: tuple[str, ...] = QUICK_START
) -> list[str]:
    """The command line of a Kafka program.

    Raises:
        NotFetched: its jars are not available.
    """
    return ["java", "-Xmx512m", *options, "-cp", class_path(jars(POM)), main_class, *arguments]


def run_kafka_tool(main_class: str, *arguments: str, **environment: str) -> None:
    """Run a Kafka program to its end; ``environment`` is added to the test's own.

    Raises:
        BrokerDidNotStart: it failed; the message has its output.
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
        # No topic is created automatically, because it would get the default number of partitions.
        # Use of a missing topic is a bug and must fail.
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        # A killed broker may register again only after the controller has expired its old session.
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "1000",
        "message.max.bytes": largest,
        "replica.fetch.max.bytes": largest,
    }

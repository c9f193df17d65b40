"""Replays to a real broker while clients write: a consumer of the replay rebuilds the table."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from msgspec import json

from tests.kafka.test_relay import created, wait_written, writing
from tests.support.kafka.kafka_broker import BrokerAddress, KafkaBroker
from tests.support.kafka.kafka_server import kafka_options, replica_of, wait_until
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import PROJECT, Server, running_server
from tests.support.tables.tables import unique_name

_DEADLINE_SECONDS = 60


class Replaying:
    """A running ``dynactor replay --json``; ``last`` is the last progress that it printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.last: dict[str, Any] = {}
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def end(self) -> None:
        """Wait until the command has ended."""
        self.process.wait(_DEADLINE_SECONDS)
        self._reader.join(_DEADLINE_SECONDS)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.last = json.decode(line)


def follows_closely(server: Server) -> bool:
    """Whether the only replay has published all changes so far."""
    (job,) = ask(admin_port(server), "/replays").json["replays"]
    return job["state"] == "FOLLOWING" and job["changes"] == job["changes_total"]


@contextmanager
def replaying(server: Server, table: str, topic: str, *arguments: str) -> Iterator[Replaying]:
    """Run the command within the context, and stop it at the end."""
    with subprocess.Popen(
        [
            sys.executable,
            *("-m", "dynactor", "replay", "--table", table, "--to-topic", topic, "--json"),
            *("--admin-endpoint", f"http://127.0.0.1:{admin_port(server)}", *arguments),
        ],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        running = Replaying(process)
        try:
            yield running
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            running.end()


async def test_a_snapshot_and_the_later_changes_rebuild_the_table(kafka_broker: BrokerAddress):
    topic = unique_name("copy")
    with running_server(*kafka_options(kafka_broker)) as server:
        table = created(server)
        with writing([server], table) as writers:
            wait_written(writers, 500)
            with replaying(server, table, topic, "--from", "snapshot", "--follow") as copy:
                wait_until(lambda: copy.last.get("state") == "FOLLOWING", "it follows")
                wait_written(writers, 1_000)
                for writer in writers:
                    writer.end()
                written = sum(writer.written for writer in writers)
                wait_until(lambda: follows_closely(server), "all is published")
        assert copy.process.returncode == 0
        assert copy.last["state"] == "CANCELLED"
        replica = await replica_of(kafka_broker, topic, server, table, "read_uncommitted")
        assert (replica.gaps, replica.duplicates, replica.overlaps) == (3, 0, 0)
        assert replica.events["INSERT", "snapshot"] == copy.last["items"] > 0
        assert 500 < copy.last["changes"] < written


async def test_recorded_changes_alone_rebuild_the_table(kafka_broker: BrokerAddress):
    topic = unique_name("copy")
    options = kafka_options(kafka_broker, "--keep-streams-seconds", "1000")
    with running_server(*options) as server:
        table = created(server)
        with writing([server], table) as writers:
            wait_written(writers, 1_500)
        with replaying(server, table, topic, "--from", "beginning") as copy:
            copy.end()
        assert (copy.process.returncode, copy.last["state"]) == (0, "DONE")
        assert copy.last["whole"]
        replica = await replica_of(kafka_broker, topic, server, table, "read_uncommitted")
        assert (replica.gaps, replica.duplicates) == (0, 0)
        assert sum(replica.events.values()) == copy.last["changes"]


async def test_a_replay_waits_for_an_unreachable_broker(
    breakable_broker: KafkaBroker, tmp_path: Path
):
    topic = unique_name("copy")
    with running_server(*kafka_options(breakable_broker), data_dir=tmp_path) as server:
        table = created(server)
        with writing([server], table) as writers:
            wait_written(writers, 500)
            with replaying(server, table, topic, "--from", "snapshot", "--follow") as copy:
                wait_until(lambda: copy.last.get("state") == "FOLLOWING", "it follows")
                with breakable_broker.stopped():
                    wait_written(writers, 1_500)
                    wait_until(lambda: copy.last["problem"] is not None, "it says so")
                wait_written(writers, 200)
                for writer in writers:
                    writer.end()
                wait_until(lambda: follows_closely(server), "all is published")
        assert copy.last["problem"] is None
        replica = await replica_of(breakable_broker, topic, server, table, "read_uncommitted")
        assert replica.overlaps == 0

"""Runs Java programs of Kafka's own client libraries, as references for our records.

Each program reads lines on its standard input and answers each with a line.
"""

from __future__ import annotations

import subprocess
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.support.environment.maven_jars import class_path, jars
from tests.support.kafka.kafka_broker import BrokerAddress

_SOURCES: Final = Path(__file__).parent
_CONNECT: Final = _SOURCES / "connect.xml"
_BROKER: Final = _SOURCES / "broker.xml"
_TOMBSTONE: Final = "-"


class Described(msgspec.Struct, frozen=True):
    """A record in Kafka Connect, with its key, value and headers as plain JSON."""

    key: Any
    value: Any
    key_schema: str | None
    value_schema: str | None
    headers: dict[str, Any]


class ConnectRecord(msgspec.Struct, frozen=True):
    """The outputs of JsonConverter (``read``) and of ExtractNewRecordState (``passed``)."""

    read: Described
    passed: Described | str


class JavaFailed(AssertionError):
    """The Java program ended with an error; the message has its output."""


def java_partitions(keys: Iterable[bytes], partition_count: int) -> list[int]:
    """The partition of each key by Java's default partitioner."""
    return [int(line) for line in _run(_BROKER, "PartitionOf", [str(partition_count)], keys)]


def partitions_of_java_producer(
    broker: BrokerAddress, topic: str, keys: Iterable[bytes]
) -> list[int]:
    """The partitions of the topic that a Java producer chose for these keys."""
    arguments = [broker.bootstrap_servers, topic]
    return [int(line) for line in _run(_BROKER, "ProduceKeys", arguments, keys)]


def read_as_connect(
    records: Iterable[tuple[bytes, bytes | None]], *, schemas: bool, **settings: str
) -> list[ConnectRecord]:
    """Convert records, each a key and a value, as Kafka Connect does for a sink connector.

    ``schemas`` is ``schemas.enable`` of JsonConverter. ``settings`` are settings of
    ExtractNewRecordState, with ``_`` instead of dots.

    Raises:
        JavaFailed: a record could not be read.
    """
    arguments = [str(schemas).lower()]
    arguments += [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
    lines = (
        f"{_base64(key)} {_TOMBSTONE if value is None else _base64(value)}"
        for key, value in records
    )
    answers = _answers(_CONNECT, "ReadAsConnect", arguments, lines)
    return [msgspec.json.decode(answer, type=ConnectRecord) for answer in answers]


def _run(pom: Path, program: str, arguments: list[str], keys: Iterable[bytes]) -> list[str]:
    return _answers(pom, program, arguments, map(_base64, keys))


def _answers(pom: Path, program: str, arguments: list[str], lines: Iterable[str]) -> list[str]:
    source = _SOURCES / f"{program}.java"
    asked = list(lines)
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", class_path(jars(pom)), str(source), *arguments],
        input="".join(f"{line}\n" for line in asked),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise JavaFailed(done.stderr)
    answers = done.stdout.splitlines()
    assert len(answers) == len(asked), done.stderr
    return answers


def _base64(data: bytes) -> str:
    return b64encode(data).decode()

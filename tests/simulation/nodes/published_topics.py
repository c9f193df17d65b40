"""Topics to which tables are published, compared with the committed changes."""

from __future__ import annotations

from typing import Final

import anyio

from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.streams.kafka.message import KafkaMessage, KafkaSource, change_messages
from dynactor.streams.kafka.partitioner import kafka_partition
from tests.simulation.nodes.committed_logs import CommittedLogs
from tests.simulation.nodes.fake_kafka import KafkaNetwork
from tests.simulation.nodes.real_nodes import RELAYS
from tests.simulation.nodes.workload import topic_of

_ACCOUNT: Final = "000000000000"
_CATCH_UP_SECONDS: Final = 90.0
_SHOWN: Final = 3


async def topic_violations(network: KafkaNetwork, logs: CommittedLogs, table: str) -> list[str]:
    """The differences between a topic and the changes. The topic must have each change once."""
    found: list[str] = []
    with anyio.move_on_after(_CATCH_UP_SECONDS):
        while found := _differences(network, logs, table):
            await anyio.sleep(1)
    return found


def _differences(network: KafkaNetwork, logs: CommittedLogs, table: str) -> list[str]:
    expected = _messages(logs, table)
    found = []
    for partition, messages in expected.items():
        published = network.broker.partition(topic_of(table), partition)
        missing, extra = _minus(messages, published), _minus(published, messages)
        if missing or extra:
            found.append(
                f"the topic of {table} lacks {len(missing)} changes {missing[:_SHOWN]}, and has "
                f"also {len(extra)} {extra[:_SHOWN]}"
            )
        last: dict[bytes, int] = {}
        for message in published:
            number = _sequence_number(message)
            if number <= last.get(message.key, 0):
                found.append(
                    f"the topic of {table} has {message} after change {last.get(message.key, 0)}"
                )
            last[message.key] = number
    return found


def _messages(logs: CommittedLogs, table: str) -> dict[int, list[KafkaMessage]]:
    """The messages of a topic by partition; those of different items may be in another order."""
    source = KafkaSource(
        "us-east-1",
        _ACCOUNT,
        table,
        KeySchema((KeyAttribute("pk", "S"),)),
        RELAYS.topic_prefix,
        RELAYS.version,
    )
    messages: dict[int, list[KafkaMessage]] = {
        number: [] for number in range(RELAYS.partition_count)
    }
    for change in logs.changes(table):
        (message,) = change_messages(change, source, RELAYS.form)
        messages[kafka_partition(message.key, RELAYS.partition_count)].append(message)
    return messages


def _minus(some: list[KafkaMessage], others: list[KafkaMessage]) -> list[int]:
    """The sequence numbers of messages that are more often in one list than in the other."""
    left = [(_sequence_number(each), each) for each in others]
    found = []
    for message in some:
        entry = _sequence_number(message), message
        if entry in left:
            left.remove(entry)
        else:
            found.append(entry[0])
    return found


def _sequence_number(message: KafkaMessage) -> int:
    return int(dict(message.headers).get("sequence-number", b"0"))

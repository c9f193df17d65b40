"""docs/KAFKA.md shows the real records, and its program rebuilds tables."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.kafka.message import (
    KafkaForm,
    KafkaMessage,
    change_messages,
    gap_message,
    snapshot_message,
)
from dynactor.streams.sequence_number import SequenceNumber
from tests.support.kafka.kafka_forms import EXPIRED, MODIFY, SOURCE, TAKEN_US
from tests.support.streams.changes import change

PAGE = (Path(__file__).parents[3] / "docs" / "KAFKA.md").read_text()
SHOWN = dict(
    re.findall(
        r"^ *<!-- (?:example|code): (.+?) -->\n *```\w*\n(.*?)^ *```$",
        PAGE,
        re.MULTILINE | re.DOTALL,
    )
)


def written(form: KafkaForm, record: Any = MODIFY) -> KafkaMessage:
    return change_messages(record, SOURCE, form)[0]


def value(message: KafkaMessage) -> str:
    assert message.value is not None
    return json.dumps(json.loads(message.value), indent=2, ensure_ascii=False)


def lines(headers: Iterator[tuple[str, bytes]]) -> str:
    return "".join(f"{name}: {content.decode()}\n" for name, content in headers)


def examples() -> dict[str, str]:
    """All examples of the page, as written."""
    default = KafkaForm()
    debezium, plain = KafkaForm(format="debezium"), {"format": "debezium", "plain_images": True}
    gap = gap_message(SOURCE, default, time_us=TAKEN_US)
    with_schema = KafkaForm(**plain, schema=True)
    cloud_events = KafkaForm(cloud_events=True)
    identity = json.loads(value(written(default, EXPIRED)))["userIdentity"]
    return {
        "key": written(default).key.decode(),
        "key of a collection": written(KafkaForm(key="collection")).key.decode(),
        "dynamodb modify": value(written(default)),
        "identity of time to live": json.dumps(identity),
        "debezium modify": value(written(debezium)),
        "debezium plain modify": value(written(KafkaForm(**plain))),
        "debezium key with schema": json.dumps(
            json.loads(written(with_schema).key), indent=2, ensure_ascii=False
        ),
        "headers": lines(iter(written(default).headers)),
        "headers of CloudEvents": lines(
            header for header in written(cloud_events).headers if header[0].startswith("ce_")
        ),
        "key of a gap": gap.key.decode(),
        "dynamodb gap": value(gap),
    }


@pytest.mark.parametrize("name", examples())
def test_an_example_equals_the_written_record(name: str):
    shown, expected = SHOWN[name].strip(), examples()[name].strip()
    if expected.startswith("{\n"):
        # The page wraps the value over several lines.
        assert json.loads(shown) == json.loads(expected), expected
    else:
        assert shown == expected


def test_every_example_of_the_page_is_generated():
    assert set(SHOWN) == {*examples(), "rebuild"}
    assert len(SHOWN) == PAGE.count("<!-- ")


class Consumed(NamedTuple):
    """A record as aiokafka gives it to a consumer, with the relevant fields."""

    partition: int
    value: bytes | None


class Copy:
    """The state of a table in the page's program."""

    def __init__(self) -> None:
        self._page: dict[str, Any] = {}
        exec(SHOWN["rebuild"], self._page)  # noqa: S102 - our own page

    def apply(self, message: KafkaMessage) -> None:
        self._page["apply"](Consumed(0, message.value))

    @property
    def entries(self) -> dict[str, tuple[int, Item | None]]:
        return dict(self._page["copies"].get(("Music", 0), {}))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[KafkaMessage], dict[str, Item]]:
    """The records of some writes, with duplicates and a gap, and the table at the end."""
    form = KafkaForm(tombstones=True)
    table: dict[str, StoredItem] = {}
    messages: list[KafkaMessage] = []
    since_gap = 0
    for counter in range(1, draw(st.integers(1, 25))):
        key: Item = {"Artist": {"S": draw(st.sampled_from("abc"))}, "Year": {"N": "1"}}
        name, number = json.dumps(key), SequenceNumber(1, counter)
        old = table.get(name)
        body: Item = {"Plays": {"N": str(counter)}}
        new = None if old and draw(st.booleans()) else body
        record = change(key, old and old.item, new, number)
        if record.new is None:
            del table[name]
        else:
            table[name] = record.new
        match draw(st.sampled_from(("told", "told", "told", "twice", "missing"))):
            case "told":
                messages += change_messages(record, SOURCE, form)
            case "twice":
                messages += change_messages(record, SOURCE, form)
                messages += messages[draw(st.integers(since_gap, len(messages) - 1)) :]
            case "missing":
                since_gap = len(messages)
                messages.append(gap_message(SOURCE, form, time_us=TAKEN_US))
                messages += [
                    snapshot_message(item, SOURCE, form, taken_us=TAKEN_US)
                    for item in table.values()
                ]
    return messages, {name: item.item for name, item in table.items()}


@given(histories())
def test_the_pages_program_ends_equal_to_the_table(
    history: tuple[list[KafkaMessage], dict[str, Item]],
):
    messages, table = history
    copy = Copy()
    for message in messages:
        copy.apply(message)
    held = {key: item for key, (_, item) in copy.entries.items() if item is not None}
    assert held == table


@given(histories())
def test_the_pages_program_ignores_older_records(
    history: tuple[list[KafkaMessage], dict[str, Item]],
):
    copy = Copy()
    for message in history[0]:
        before = copy.entries
        copy.apply(message)
        if message.key != b"{}":
            assert all(copy.entries[key][0] >= entry[0] for key, entry in before.items())

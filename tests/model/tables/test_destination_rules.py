"""The rules for a table's destinations."""

from __future__ import annotations

import pytest
from msgspec import structs

from dynactor.model.definitions.table import StreamingDestination, TableDefinition
from dynactor.model.errors import ValidationException
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables import destination_rules as rules

KEY = KeyAttribute("pk", "S")
TABLE = TableDefinition("T", 1, "uuid", 0.0, (KEY,), KeySchema((KEY,)))


def with_status(status: str, **members) -> TableDefinition:
    destination = StreamingDestination(1, "topic", status, **members)
    return structs.replace(TABLE, destinations=(destination,), next_destination_id=2)


def test_a_destination_begins_as_enabling_under_an_id_of_its_own():
    table = rules.enabled(TABLE, "topic", "MICROSECOND")
    assert table.destinations == (
        StreamingDestination(1, "topic", "ENABLING", precision="MICROSECOND"),
    )
    assert table.next_destination_id == 2
    assert table.records_changes


@pytest.mark.parametrize(
    "status", ["ENABLING", "ACTIVE", "UPDATING", "DISABLING", "ENABLE_FAILED", "BROKEN"]
)
def test_a_table_with_a_destination_in_use_gets_no_other(status: str):
    with pytest.raises(ValidationException, match="must be DISABLED or ENABLE_FAILED"):
        rules.enabled(with_status(status), "other", "MILLISECOND")


def test_a_topic_that_is_enabled_again_is_shown_once():
    table = rules.enabled(with_status("DISABLED"), "topic", "MILLISECOND")
    assert [(each.destination_id, each.status) for each in table.destinations] == [(2, "ENABLING")]


def test_only_the_last_topics_that_were_disabled_are_shown():
    table = TABLE
    for number in range(30):
        table = rules.enabled(table, f"topic{number}", "MILLISECOND")
        table = rules.with_destination(
            table, structs.replace(table.destinations[-1], status="DISABLED")
        )
    assert [each.topic for each in table.destinations] == [f"topic{at}" for at in range(20, 30)]


@pytest.mark.parametrize("status", ["ENABLING", "ACTIVE", "BROKEN"])
def test_a_destination_in_use_can_be_disabled(status: str):
    table = rules.disabling(with_status(status, status_description="told"), "topic")
    assert table.destinations == (StreamingDestination(1, "topic", "DISABLING"),)
    assert not table.records_changes


@pytest.mark.parametrize(
    ("status", "topic"), [("DISABLED", "topic"), ("DISABLING", "topic"), ("ACTIVE", "other")]
)
def test_an_unused_destination_can_not_be_disabled(status: str, topic: str):
    with pytest.raises(ValidationException, match="must be ACTIVE to perform DISABLE"):
        rules.disabling(with_status(status), topic)


@pytest.mark.parametrize("status", ["DISABLED", "DISABLING", "BROKEN"])
def test_an_inactive_destination_can_not_be_updated(status: str):
    with pytest.raises(ValidationException, match="No streaming destination"):
        rules.updated(with_status(status), "topic", "MICROSECOND")


@pytest.mark.parametrize("name", ["a", "a.b-c_D9", "x" * 249, "x__y", "p.__x"])
def test_the_name_of_a_topic_is_valid(name: str):
    rules.check_topic(name)
    with pytest.raises(ValidationException):
        rules.check_topic(f"{name} {name}")


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "ä", "__x", "p.__positions"])
def test_an_invalid_name_of_a_topic_is_refused(name: str):
    with pytest.raises(ValidationException, match="Invalid StreamArn"):
        rules.check_topic(name)


def test_two_long_table_names_have_different_topics():
    first, second = (rules.default_topic("p", "x" * 254 + end) for end in "ab")
    assert first != second
    for topic in (first, second):
        rules.check_topic(topic)

"""The expiry of items, and the rules for a table's time to live."""

from __future__ import annotations

import pytest

from dynactor.model.capacity import Receipt
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import TableDefinition, TimeToLive, TimeToLiveStatus
from dynactor.model.errors import ValidationException
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import TIME_TO_LIVE_PAST_SECONDS
from dynactor.model.tables.time_to_live import TimeToLiveChange, changed, shown_status
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.expiry import Expiry, ExpiryReader, expire, expires_at_us, is_expired

NOW = 1_571_827_560.0
HOUR = 3600.0

PK = KeyAttribute("pk", "S")
BY_SIZE = IndexDefinition(
    1, "by_size", KeySchema((PK,), (KeyAttribute("size", "N"),)), Projection("ALL")
)
SIMPLE = KeySchema((PK,))
READER = ExpiryReader(SIMPLE, "at")


def timed(number: str) -> Item:
    return {"pk": {"S": "a"}, "at": {"N": number}}


@pytest.mark.parametrize(
    ("number", "expired"),
    [
        ("1571827559", True),
        ("1571827560", False),
        ("1571827561", False),
        ("1571827559.999999999999999999", True),
        ("1571827560.000000000000000001", False),
        (str(int(NOW) - TIME_TO_LIVE_PAST_SECONDS), False),
        (str(int(NOW) - TIME_TO_LIVE_PAST_SECONDS + 1), True),
        (f"{int(NOW) - TIME_TO_LIVE_PAST_SECONDS}.5", True),
        (str(int(NOW) - TIME_TO_LIVE_PAST_SECONDS - 1), False),
        ("1571827559000", False),
        ("0", False),
        ("-1", False),
        ("1" + "0" * 125, False),
        ("-1" + "0" * 125, False),
        ("0." + "0" * 129 + "1", False),
    ],
)
def test_an_item_has_expired_for_five_years_after_its_time(number: str, expired: bool):
    assert is_expired(number, NOW) is expired


def test_five_years_are_counted_to_the_second():
    assert TIME_TO_LIVE_PAST_SECONDS == 157_680_000


@pytest.mark.parametrize(
    "value",
    [
        {"S": "1571827000"},
        {"NS": ["1571827000"]},
        {"L": [{"N": "1571827000"}]},
        {"M": {"N": {"N": "1571827000"}}},
        {"NULL": True},
        {"BOOL": True},
        {"B": "MTU3MTgyNzAwMA=="},
        None,
    ],
)
def test_only_a_number_makes_an_item_expire(value: dict | None):
    item = {"pk": {"S": "a"}} | ({} if value is None else {"at": value})
    assert READER.time(StoredItem.of(item, 1)) is None
    assert not is_expired(None, NOW)
    assert expires_at_us(None) is None


@pytest.mark.parametrize(
    "name", ["at", "Ablauf-Zeit", "größe 💾", 'quoted "name"', "member_0", "_"]
)
def test_the_attribute_may_have_any_name(name: str):
    item = {"pk": {"S": "a"}, "b": {"L": [{"N": "1"}]}, name: {"N": "12.5"}, "z": {"NULL": True}}
    assert ExpiryReader(SIMPLE, name).time(StoredItem.of(item, 1)) == "12.5"


def test_the_attribute_may_be_one_of_the_key():
    by_time = KeySchema((PK,), (KeyAttribute("at", "N"),))
    reader = ExpiryReader(by_time, "at")
    stored = StoredItem.of(timed("12") | {"other": {"S": "x"}}, 1)
    assert (reader.time(stored), reader.key(stored)) == ("12", timed("12"))


@pytest.mark.parametrize(
    ("number", "at_us"),
    [
        ("0", 0),
        ("12", 12_000_000),
        ("1571827560.5", 1_571_827_560_500_000),
        ("1571827560.000001", 1_571_827_560_000_001),
        ("1571827560.0000001", 1_571_827_560_000_001),
        ("0." + "0" * 129 + "1", 1),
        ("-1.5", -1_500_000),
        ("-1.0000005", -1_000_000),
        ("999999999999", 999_999_999_999_000_000),
        ("1571827560000", None),
        ("1" + "0" * 125, None),
        ("-1" + "0" * 125, None),
    ],
)
def test_times_are_listed_to_the_microsecond_and_rounded_up(number: str, at_us: int | None):
    assert expires_at_us(number) == at_us


TABLE = TableDefinition(
    name="t",
    table_id=1,
    uuid="",
    created_epoch_seconds=0,
    attribute_definitions=(PK,),
    key_schema=SIMPLE,
    local_indexes=(BY_SIZE,),
    time_to_live=TimeToLive("at", "ENABLED", 0.0),
)


def expired(item: Item | None) -> Expiry | None:
    return expire(TABLE, READER, None if item is None else StoredItem.of(item, 7), NOW)


def test_an_expired_item_goes_with_its_index_entries_and_costs_nothing():
    old = timed("1571827000") | {"size": {"N": "1"}}
    expiry = expired(old)
    assert expiry is not None
    assert expiry.key == {"pk": {"S": "a"}}
    change = expiry.change
    assert change.old is not None
    assert (change.old.item, change.new) == (old, None)
    assert [one.definition for one in change.local_changes] == [BY_SIZE]
    assert change.receipt == Receipt()


def test_nothing_is_deleted_without_an_expired_item():
    assert expired(None) is None
    assert expired(timed("1571827560")) is None


ON = TimeToLiveChange(enabled=True, attribute_name="at")
OFF = TimeToLiveChange(enabled=False, attribute_name="at")


def test_time_to_live_is_enabled_and_disabled():
    on = changed(None, ON, NOW, HOUR)
    assert on == TimeToLive("at", "ENABLING", NOW)
    enabled = TimeToLive("at", "ENABLED", NOW)
    assert changed(enabled, OFF, NOW + HOUR, HOUR) == TimeToLive("at", "DISABLING", NOW + HOUR)


def test_time_to_live_is_enabled_with_another_attribute_after_it_was_disabled():
    off = TimeToLive("at", "DISABLED", NOW)
    other = TimeToLiveChange(enabled=True, attribute_name="other")
    assert changed(off, other, NOW + HOUR, HOUR).attribute_name == "other"


def test_a_transition_that_is_over_refuses_no_change():
    enabling, disabling = TimeToLive("at", "ENABLING", NOW), TimeToLive("at", "DISABLING", NOW)
    assert changed(enabling, OFF, NOW + HOUR, HOUR).status == "DISABLING"
    assert changed(disabling, ON, NOW + HOUR, HOUR).status == "ENABLING"
    with pytest.raises(ValidationException, match=MULTIPLE_TIMES):
        changed(enabling, OFF, NOW + HOUR - 1, HOUR)


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("ENABLING", "ENABLED"),
        ("ENABLED", "ENABLED"),
        ("DISABLING", "DISABLED"),
        ("DISABLED", "DISABLED"),
    ],
)
def test_temporary_states_are_shown_only_if_they_have_a_duration(
    status: TimeToLiveStatus, shown: TimeToLiveStatus
):
    assert shown_status(status, transition_seconds=0) == shown
    assert shown_status(status, transition_seconds=1) == status


MULTIPLE_TIMES = "Time to live has been modified multiple times within a fixed interval"
ANOTHER = "TimeToLive is active on a different AttributeName: current AttributeName is at"


@pytest.mark.parametrize(
    ("status", "asked", "after_seconds", "message"),
    [
        ("ENABLED", (True, "at"), HOUR, "TimeToLive is already enabled"),
        ("ENABLING", (True, "at"), 0, "TimeToLive is already enabled"),
        ("ENABLED", (True, "other"), HOUR, ANOTHER),
        ("ENABLED", (False, "other"), HOUR, ANOTHER),
        ("ENABLED", (False, "at"), HOUR - 1, MULTIPLE_TIMES),
        ("ENABLING", (False, "at"), HOUR, MULTIPLE_TIMES),
        ("DISABLED", (False, "at"), HOUR, "TimeToLive is already disabled"),
        ("DISABLING", (False, "other"), 0, "TimeToLive is already disabled"),
        ("DISABLING", (True, "at"), HOUR, MULTIPLE_TIMES),
        ("DISABLED", (True, "at"), HOUR - 1, MULTIPLE_TIMES),
        (None, (False, "at"), 0, "TimeToLive is already disabled"),
    ],
)
def test_an_invalid_change_of_time_to_live_is_refused(
    status: str | None, asked: tuple[bool, str], after_seconds: float, message: str
):
    current = None if status is None else TimeToLive("at", status, NOW)  # type: ignore[arg-type]
    with pytest.raises(ValidationException) as refused:
        changed(current, TimeToLiveChange(*asked), NOW + after_seconds, HOUR, transition_seconds=1)
    assert refused.value.message == message

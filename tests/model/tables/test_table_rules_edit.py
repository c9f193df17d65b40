"""The rules for changes by UpdateTable."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dynactor.model.definitions.table import TableDefinition, Throughput
from dynactor.model.errors import LimitExceededException, ValidationException
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.stream_rules import StreamChange
from dynactor.model.tables.table_edits import NOTHING_TO_UPDATE, TableEdit, apply_edit, check_edit
from dynactor.model.tables.table_rules import NewTable, after_edit, check_deletable, define, settled
from dynactor.model.tables.throughput_rules import shown_warm_throughput

NOON = 1_000_000_000.0 // 86_400 * 86_400 + 43_200
DAY = 86_400
PROVISIONED = {"billing_mode": "PROVISIONED", "throughput": Throughput(5, 5)}


def made(**members: Any) -> TableDefinition:
    good: dict[str, Any] = {
        "name": "table",
        "key_schema": (KeyElement("a", "HASH"),),
        "attribute_definitions": (KeyAttribute("a", "S"),),
        "billing_mode": "PAY_PER_REQUEST",
    }
    return define(NewTable(**{**good, **members}))


def edited(
    definition: TableDefinition, now_epoch_seconds: float = NOON, **members: Any
) -> TableDefinition:
    """The result of an edit of a definition without pending changes."""
    edit = TableEdit(**members)
    check_edit(edit)
    return apply_edit(replace(definition, status="ACTIVE", changing=()), edit, now_epoch_seconds)


def refusal(definition: TableDefinition, **members: Any) -> str:
    with pytest.raises(ValidationException) as caught:
        edited(definition, **members)
    return caught.value.message


def test_an_update_of_nothing_is_refused():
    assert refusal(made()) == NOTHING_TO_UPDATE


def test_a_table_becomes_provisioned_only_with_its_throughput():
    assert refusal(made(), billing_mode="PROVISIONED") == (
        "One or more parameter values were invalid: ProvisionedThroughput must be specified "
        "when BillingMode is PROVISIONED"
    )
    changed = edited(made(), **PROVISIONED)
    assert changed.billing_mode == "PROVISIONED"
    assert (changed.throughput.read_units, changed.throughput.write_units) == (5, 5)


def test_a_table_on_demand_has_no_provisioned_throughput():
    message = (
        "One or more parameter values were invalid: Neither ReadCapacityUnits nor "
        "WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
    )
    assert refusal(made(), throughput=Throughput(1, 1)) == message
    message = (
        "One or more parameter values were invalid: ProvisionedThroughput cannot be specified "
        "when BillingMode is PAY_PER_REQUEST"
    )
    both = {"billing_mode": "PAY_PER_REQUEST", "throughput": Throughput(1, 1)}
    assert refusal(made(**PROVISIONED), **both) == message
    changed = edited(made(**PROVISIONED), billing_mode="PAY_PER_REQUEST")
    assert changed.on_demand_since_epoch_seconds is None
    assert settled(changed).on_demand_since_epoch_seconds == NOON
    assert (changed.throughput.read_units, changed.throughput.write_units) == (0, 0)


def test_the_same_throughput_again_is_refused():
    assert refusal(made(**PROVISIONED), throughput=Throughput(5, 5)) == (
        "The provisioned throughput for the table will not change. The requested value equals "
        "the current value. Current ReadCapacityUnits provisioned for the table: 5. Requested "
        "ReadCapacityUnits: 5. Current WriteCapacityUnits provisioned for the table: 5. "
        "Requested WriteCapacityUnits: 5. Refer to the Amazon DynamoDB Developer Guide for "
        "current limits and how to request higher limits."
    )


def test_the_times_of_increases_and_decreases_are_stored():
    changed = edited(made(**PROVISIONED), throughput=Throughput(6, 4))
    # Answers show the times at once.
    assert changed.throughput == Throughput(5, 5, NOON, NOON, 0)
    changed = settled(changed)
    assert changed.throughput == Throughput(6, 4, NOON, NOON, 1)
    changed = edited(changed, NOON + 1, throughput=Throughput(6, 3))
    assert settled(changed).throughput == Throughput(6, 3, NOON, NOON + 1, 2)


def test_decreases_are_counted_by_the_day():
    changed = settled(edited(made(**PROVISIONED), throughput=Throughput(4, 4)))
    changed = edited(changed, NOON + DAY, throughput=Throughput(3, 4))
    assert settled(changed).throughput.decreases_today == 1


def test_on_demand_maxima_are_merged_and_end_with_the_mode():
    changed = edited(made(), on_demand_throughput={"MaxReadRequestUnits": 5})
    changed = edited(changed, on_demand_throughput={"MaxWriteRequestUnits": -1})
    assert changed.on_demand_throughput == {"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": -1}
    assert edited(changed, **PROVISIONED).on_demand_throughput is None


def test_warm_throughput_only_rises():
    changed = edited(made(), warm_throughput={"ReadUnitsPerSecond": 20_000})
    assert shown_warm_throughput(changed)["ReadUnitsPerSecond"] == 12_000
    changed = settled(changed)
    assert shown_warm_throughput(changed) == {
        "ReadUnitsPerSecond": 20_000,
        "WriteUnitsPerSecond": 4_000,
    }
    assert "lower than current" in refusal(changed, warm_throughput={"ReadUnitsPerSecond": 19_999})


def test_warm_throughput_stays_at_the_highest_units():
    raised = settled(edited(made(**PROVISIONED), throughput=Throughput(9, 3)))
    lowered = settled(edited(raised, throughput=Throughput(1, 1)))
    assert shown_warm_throughput(lowered) == {"ReadUnitsPerSecond": 9, "WriteUnitsPerSecond": 5}
    provisioned = settled(edited(made(), **PROVISIONED))
    assert shown_warm_throughput(provisioned) == {
        "ReadUnitsPerSecond": 12_000,
        "WriteUnitsPerSecond": 4_000,
    }


def test_the_class_of_a_table_changes_with_its_time():
    changed = edited(made(), table_class="STANDARD_INFREQUENT_ACCESS")
    assert changed.table_class == "STANDARD_INFREQUENT_ACCESS"
    assert changed.table_class_changed_epoch_seconds == NOON


def test_only_a_change_of_settings_is_an_update_in_progress():
    assert edited(made(), **PROVISIONED).status == "UPDATING"
    again = edited(made(), billing_mode="PAY_PER_REQUEST")
    assert (again.status, after_edit(again).status) == ("UPDATING", "ACTIVE")
    again = edited(made(), table_class="STANDARD")
    assert (again.status, after_edit(again).status) == ("UPDATING", "ACTIVE")
    assert edited(made(), warm_throughput={"ReadUnitsPerSecond": 20_000}).status == "ACTIVE"
    assert edited(made(), deletion_protection=True).status == "ACTIVE"
    assert edited(made(), tags_to_add=(("a", "1"),)).status == "ACTIVE"


def test_tags_are_added_replaced_and_removed():
    tagged = made(tags=(("a", "1"), ("b", "2")))
    changed = edited(tagged, tags_to_add=(("b", "3"), ("c", "")))
    assert changed.tags == (("a", "1"), ("b", "3"), ("c", ""))
    changed = edited(changed, tag_keys_to_remove=("a", "unknown"))
    assert changed.tags == (("b", "3"), ("c", ""))


def test_fifty_tags_are_the_most():
    tagged = made(tags=tuple((f"key{number}", "") for number in range(50)))
    assert edited(tagged, tags_to_add=(("key7", "new"),))
    assert "Number of Tags exceed" in refusal(tagged, tags_to_add=(("one more", ""),))


CREATE = {
    "index_creates": (
        NewGlobalIndex("index", (KeyElement("a", "HASH"),), "ALL", throughput=Throughput(1, 1)),
    ),
    "attribute_definitions": (KeyAttribute("a", "S"),),
}
INVALID = "One or more parameter values were invalid: "
ENABLE = StreamChange(enabled=True, view_type="NEW_IMAGE")
ONLY = "modification must be the only operation in the request"


@pytest.mark.parametrize("change", [CREATE, {"index_deletes": ("index",)}])
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"throughput": Throughput(7, 7)},
            f"{INVALID}You cannot create or delete index while updating table IOPS",
        ),
        (
            {"stream": StreamChange(enabled=True, view_type="NEW_IMAGE")},
            f"{INVALID}You cannot create or delete index while changing stream status",
        ),
        ({"deletion_protection": True}, f"{INVALID}DeletionProtection {ONLY}"),
        ({"table_class": "STANDARD_INFREQUENT_ACCESS"}, f"{INVALID}TableClass {ONLY}"),
    ],
)
def test_an_index_is_not_added_or_deleted_with_other_changes(
    change: dict[str, Any], members: dict[str, Any], message: str
):
    assert refusal(made(**PROVISIONED), **change, **members) == message


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"deletion_protection": True}, f"{INVALID}DeletionProtection {ONLY}"),
        ({"table_class": "STANDARD"}, f"{INVALID}TableClass {ONLY}"),
    ],
)
def test_protection_and_table_class_change_without_other_changes(
    members: dict[str, Any], message: str
):
    table = made(**PROVISIONED)
    assert refusal(table, **members, throughput=Throughput(7, 7)) == message
    assert edited(table, **members, attribute_definitions=(KeyAttribute("a", "S"),))


def test_the_first_change_that_needs_its_own_request_is_named():
    members: dict[str, Any] = {
        "warm_throughput": {"ReadUnitsPerSecond": 20_000},
        "deletion_protection": True,
        "table_class": "STANDARD",
        "sse_specification": {"Enabled": True},
    }
    for name in ("SSE", "TableClass", "DeletionProtection"):
        assert refusal(made(), **members) == f"{INVALID}{name} {ONLY}"
        members.popitem()
    members["stream"] = ENABLE
    assert refusal(made(), **members) == f"{INVALID}WarmThroughput {ONLY}"


def test_an_empty_structure_may_accompany_any_change():
    nothing: dict[str, Any] = {"warm_throughput": {}, "on_demand_throughput": {}}
    assert edited(made(), deletion_protection=True, **nothing).deletion_protection
    changed = edited(made(), table_class="STANDARD_INFREQUENT_ACCESS", **nothing)
    assert changed.table_class == "STANDARD_INFREQUENT_ACCESS"
    assert changed.warm_throughput is None
    assert refusal(made(), **nothing) == NOTHING_TO_UPDATE


def test_a_stream_and_units_change_in_requests_of_their_own():
    assert refusal(made(**PROVISIONED), throughput=Throughput(7, 7), stream=ENABLE) == (
        f"{INVALID}You cannot modify stream status while updating table IOPS"
    )


def test_a_maximum_of_a_provisioned_table_is_refused():
    maximum = {"MaxWriteRequestUnits": 5}
    assert refusal(made(**PROVISIONED), on_demand_throughput=maximum) == (
        f"{INVALID}MaxWriteRequestUnits for OnDemandThroughput cannot be specified when the "
        "table BillingMode is PROVISIONED"
    )


def test_a_protected_table_is_not_deleted():
    protected = edited(made(), deletion_protection=True)
    with pytest.raises(ValidationException, match="currently protected against deletion"):
        check_deletable(protected)
    check_deletable(edited(protected, deletion_protection=False))


def switched(definition: TableDefinition, at: float) -> TableDefinition:
    """A provisioned table after a switch to on-demand and back."""
    on_demand = edited(definition, at, billing_mode="PAY_PER_REQUEST")
    return edited(on_demand, at, **PROVISIONED)


def test_a_table_becomes_on_demand_four_times_in_any_24_hours():
    definition = made(**PROVISIONED)
    for hour in range(4):
        definition = switched(definition, NOON + hour * 3_600)

    with pytest.raises(LimitExceededException) as caught:
        switched(definition, NOON + DAY - 1)
    assert caught.value.message == (
        "Subscriber limit exceeded: Update to PayPerRequest mode are limited to 4 times in 1 "
        "day(s)."
    )

    again = switched(definition, NOON + DAY)
    with pytest.raises(LimitExceededException):
        switched(again, NOON + DAY + 3_599)
    assert switched(again, NOON + DAY + 3_600).billing_mode == "PROVISIONED"


def test_the_class_changes_twice_in_30_days():
    definition = made()
    for day, name in enumerate(("STANDARD_INFREQUENT_ACCESS", "STANDARD")):
        definition = edited(definition, NOON + day * DAY, table_class=name)
    other: dict[str, Any] = {"table_class": "STANDARD_INFREQUENT_ACCESS"}
    with pytest.raises(LimitExceededException) as caught:
        edited(definition, NOON + 30 * DAY - 1, **other)
    assert caught.value.message == ("Updates to TableClass are limited to 2 times in 30 day(s).")
    assert edited(definition, NOON, table_class="STANDARD").table_class == "STANDARD"
    assert edited(definition, NOON + 30 * DAY, **other).table_class == other["table_class"]


def test_the_encryption_changes_four_times_in_24_hours():
    definition = made()
    for hour in range(4):
        wanted = {"Enabled": hour % 2 == 0}
        definition = edited(definition, NOON + hour * 3_600, sse_specification=wanted)
    with pytest.raises(LimitExceededException, match="SSESpecification are limited to 4 times"):
        edited(definition, NOON + DAY - 1, sse_specification={"Enabled": True})
    assert edited(definition, NOON + DAY, sse_specification={"Enabled": True})


def test_creating_a_table_on_demand_does_not_count_as_a_switch():
    definition = edited(made(), **PROVISIONED)
    for _ in range(4):
        definition = switched(definition, NOON)

    with pytest.raises(LimitExceededException):
        switched(definition, NOON)

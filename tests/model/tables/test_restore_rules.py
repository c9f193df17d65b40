"""A backup of a table in any state can be restored."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import (
    BillingMode,
    StreamSettings,
    TableDefinition,
    Throughput,
    TimeToLive,
)
from dynactor.model.errors import ValidationException
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.tables.global_index_rules import GlobalIndexUpdate, NewGlobalIndex
from dynactor.model.tables.restore_rules import RestoreOverrides, restored
from dynactor.model.tables.schema_rules import KeyElement, NewIndex
from dynactor.model.tables.table_edits import TableEdit, apply_edit
from dynactor.model.tables.table_rules import NewTable, define, settled

NOON = 1_000_000_000.0
LIMITS = {"MaxReadRequestUnits": 30, "MaxWriteRequestUnits": 20}
BY_N = NewGlobalIndex("by_n", (KeyElement("n", "HASH"),), "KEYS_ONLY")
BY_M = NewIndex("by_m", (KeyElement("a", "HASH"), KeyElement("m", "RANGE")), "INCLUDE", ("x", "y"))


def made(billing_mode: BillingMode, **members: Any) -> TableDefinition:
    """A table of a and b with a local index by m and a global one by n."""
    is_provisioned = billing_mode == "PROVISIONED"
    units = Throughput(5, 4) if is_provisioned else None
    limits = None if is_provisioned else LIMITS
    good: dict[str, Any] = {
        "name": "table",
        "key_schema": (KeyElement("a", "HASH"), KeyElement("b", "RANGE")),
        "attribute_definitions": tuple(KeyAttribute(name, "S") for name in "abmn"),
        "local_indexes": (BY_M,),
        "global_indexes": (replace(BY_N, throughput=units, on_demand_throughput=limits),),
        "billing_mode": billing_mode,
        "throughput": units,
        "on_demand_throughput": limits,
    }
    return define(NewTable(**{**good, **members}))


def edited(definition: TableDefinition, **members: Any) -> TableDefinition:
    """A definition after a completed edit."""
    return settled(apply_edit(definition, TableEdit(**members), NOON))


def provisioned_later() -> TableDefinition:
    """A table that was on demand, with limits, and is now provisioned."""
    return edited(
        made("PAY_PER_REQUEST"),
        billing_mode="PROVISIONED",
        throughput=Throughput(3, 2),
        index_updates=(GlobalIndexUpdate("by_n", Throughput(2, 1)),),
    )


def on_demand_later() -> TableDefinition:
    """A table that was provisioned, and is now on demand."""
    return edited(made("PROVISIONED"), billing_mode="PAY_PER_REQUEST")


TABLES = [made("PROVISIONED"), made("PAY_PER_REQUEST"), provisioned_later(), on_demand_later()]


@pytest.mark.parametrize("source", TABLES)
def test_a_table_is_restored_with_its_definition(source: TableDefinition):
    copy = restored(source, "copy", RestoreOverrides())
    assert copy.name == "copy"
    assert copy.key_schema == source.key_schema
    assert copy.billing_mode == source.billing_mode
    assert (copy.throughput.read_units, copy.throughput.write_units) == (
        source.throughput.read_units,
        source.throughput.write_units,
    )
    assert copy.on_demand_throughput == source.on_demand_throughput
    assert copy.local_indexes == source.local_indexes
    for index, original in zip(copy.global_indexes, source.global_indexes, strict=True):
        assert index.definition == original.definition
        assert index.throughput.write_units == original.throughput.write_units


@pytest.mark.parametrize("source", TABLES)
def test_any_table_is_restored_on_demand(source: TableDefinition):
    copy = restored(source, "copy", RestoreOverrides(billing_mode="PAY_PER_REQUEST"))
    assert copy.billing_mode == "PAY_PER_REQUEST"
    assert copy.throughput == Throughput(0, 0)


@pytest.mark.parametrize("source", TABLES)
def test_any_table_is_restored_as_a_provisioned_one(source: TableDefinition):
    units = Throughput(9, 8)
    overrides = RestoreOverrides(
        billing_mode="PROVISIONED",
        throughput=units,
        global_indexes=(replace(BY_N, throughput=Throughput(7, 6)),),
    )
    copy = restored(source, "copy", overrides)
    assert copy.throughput == units
    assert copy.global_indexes[0].throughput == Throughput(7, 6)
    assert copy.on_demand_throughput is None
    assert copy.global_indexes[0].on_demand_throughput is None


def test_a_decrease_of_the_source_does_not_count_for_the_new_table():
    source = edited(made("PROVISIONED"), throughput=Throughput(1, 1))
    assert source.throughput.decreases_today == 1
    assert restored(source, "copy", RestoreOverrides()).throughput == Throughput(1, 1)


def test_an_index_that_was_being_deleted_is_not_restored():
    source = made("PROVISIONED")
    deleting = replace(source.global_indexes[0], status="DELETING")
    copy = restored(replace(source, global_indexes=(deleting,)), "copy", RestoreOverrides())
    assert copy.global_indexes == ()
    assert [attribute.name for attribute in copy.attribute_definitions] == ["a", "b", "m"]


def test_a_request_for_an_index_that_was_being_deleted_is_refused():
    source = made("PROVISIONED")
    deleting = replace(source.global_indexes[0], status="DELETING")
    source = replace(source, global_indexes=(deleting,))
    with pytest.raises(ValidationException, match="does not match any index"):
        restored(source, "copy", RestoreOverrides(global_indexes=(BY_N,)))


def test_an_index_that_was_being_added_is_restored():
    source = made("PROVISIONED")
    adding = replace(source.global_indexes[0], status="CREATING", backfilling=True)
    copy = restored(replace(source, global_indexes=(adding,)), "copy", RestoreOverrides())
    assert [index.definition.name for index in copy.global_indexes] == ["by_n"]


def test_restored_indexes_are_numbered_without_gaps():
    source = made("PROVISIONED")
    later = replace(
        source.global_indexes[0],
        definition=IndexDefinition(
            9, "by_n", source.global_indexes[0].definition.key_schema, Projection("KEYS_ONLY")
        ),
    )
    source = replace(source, global_indexes=(later,), next_index_id=10)
    copy = restored(source, "copy", RestoreOverrides())
    assert copy.global_indexes[0].definition.index_id == 2
    assert copy.next_index_id == 3


def test_a_restored_table_lacks_the_settings_that_dynamodb_does_not_restore():
    source = replace(
        made("PROVISIONED"),
        stream=StreamSettings("label", "NEW_IMAGE"),
        time_to_live=TimeToLive("at", "ENABLED", NOON),
        tags=(("a", "b"),),
        deletion_protection=True,
        warm_throughput={"ReadUnitsPerSecond": 9_000, "WriteUnitsPerSecond": 3_000},
    )
    copy = restored(source, "copy", RestoreOverrides())
    assert copy.stream is None
    assert copy.time_to_live is None
    assert copy.tags == ()
    assert copy.deletion_protection is False
    assert copy.warm_throughput is None


@pytest.mark.parametrize(
    "wanted",
    [
        replace(BY_N, projection_type="ALL"),
        replace(BY_N, key_schema=(KeyElement("m", "HASH"),)),
        replace(BY_N, key_schema=(KeyElement("n", "HASH"), KeyElement("m", "RANGE"))),
        replace(BY_N, projection_type="INCLUDE", non_key_attributes=("x",)),
    ],
)
def test_an_index_that_the_source_does_not_have_is_refused(wanted: NewGlobalIndex):
    with pytest.raises(ValidationException, match="does not match any index"):
        restored(made("PROVISIONED"), "copy", RestoreOverrides(global_indexes=(wanted,)))


def test_an_override_may_rename_an_index_which_keeps_its_throughput():
    wanted = replace(BY_N, name="renamed", throughput=None)
    source = made("PROVISIONED")
    copy = restored(source, "copy", RestoreOverrides(global_indexes=(wanted,)))
    (index,) = copy.global_indexes
    assert index.definition.name == "renamed"
    (original,) = source.global_indexes
    assert index.definition.key_schema == original.definition.key_schema
    assert index.throughput == original.throughput

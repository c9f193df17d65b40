"""A change in progress excludes some changes, and lets others start."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dynactor.model.definitions.table import TableDefinition, Throughput
from dynactor.model.errors import ResourceInUseException
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.tables.global_index_rules import GlobalIndexUpdate, NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.stream_rules import StreamChange
from dynactor.model.tables.table_edits import TableEdit, apply_edit, check_edit
from dynactor.model.tables.table_rules import NewTable, after_edit, check_deletable, define, settled

IN_USE = "Attempt to change a resource which is still in use: "
UNITS = Throughput(1, 1)
ON_INDEX = (KeyElement("b", "HASH"),)
KEYS = (KeyAttribute("a", "S"), KeyAttribute("b", "S"))

THROUGHPUT: dict[str, Any] = {"throughput": Throughput(7, 7)}
STREAM: dict[str, Any] = {"stream": StreamChange(enabled=True, view_type="NEW_IMAGE")}
NO_STREAM: dict[str, Any] = {"stream": StreamChange(enabled=False)}
SSE: dict[str, Any] = {"sse_specification": {"Enabled": True}}
TABLE_CLASS: dict[str, Any] = {"table_class": "STANDARD_INFREQUENT_ACCESS"}
STANDARD: dict[str, Any] = {"table_class": "STANDARD"}
PROTECTION: dict[str, Any] = {"deletion_protection": True}
WARM: dict[str, Any] = {"warm_throughput": {"ReadUnitsPerSecond": 20_000}}
WARMER: dict[str, Any] = {"warm_throughput": {"ReadUnitsPerSecond": 30_000}}
MAXIMUM: dict[str, Any] = {"on_demand_throughput": {"MaxReadRequestUnits": 5}}
OTHER_MAXIMUM: dict[str, Any] = {"on_demand_throughput": {"MaxReadRequestUnits": 6}}
SAME_MODE: dict[str, Any] = {"billing_mode": "PAY_PER_REQUEST"}
INDEX: dict[str, Any] = {
    "index_creates": (NewGlobalIndex("new", ON_INDEX, "ALL"),),
    "attribute_definitions": KEYS,
}
INDEX_WITH_UNITS: dict[str, Any] = {
    **INDEX,
    "index_creates": (NewGlobalIndex("new", ON_INDEX, "ALL", throughput=UNITS),),
}
NO_INDEX: dict[str, Any] = {"index_deletes": ("present",)}
INDEX_UNITS: dict[str, Any] = {"index_updates": (GlobalIndexUpdate("present", Throughput(2, 2)),)}
INDEX_WARMTH: dict[str, Any] = {
    "index_updates": (GlobalIndexUpdate("present", warm_throughput={"ReadUnitsPerSecond": 20_000}),)
}

ON_DEMAND = define(
    NewTable(
        "table",
        (KeyElement("a", "HASH"),),
        KEYS,
        global_indexes=(NewGlobalIndex("present", ON_INDEX, "ALL"),),
        billing_mode="PAY_PER_REQUEST",
    )
)
PROVISIONED = define(
    NewTable(
        "table",
        (KeyElement("a", "HASH"),),
        KEYS,
        global_indexes=(NewGlobalIndex("present", ON_INDEX, "ALL", throughput=UNITS),),
        throughput=UNITS,
    )
)


def edited(definition: TableDefinition, members: dict[str, Any]) -> TableDefinition:
    edit = TableEdit(**members)
    check_edit(edit)
    return apply_edit(definition, edit, 1_000.0)


@pytest.mark.parametrize(
    ("definition", "first", "second"),
    [
        (ON_DEMAND, STREAM, PROTECTION),
        (ON_DEMAND, STREAM, SSE),
        (ON_DEMAND, STREAM, WARM),
        (ON_DEMAND, STREAM, SAME_MODE),
        (ON_DEMAND, STREAM, TABLE_CLASS),
        (PROVISIONED, STREAM, THROUGHPUT),
        (PROVISIONED, THROUGHPUT, SSE),
        (PROVISIONED, THROUGHPUT, STREAM),
        (ON_DEMAND, WARM, MAXIMUM),
        (ON_DEMAND, SSE, INDEX),
        (ON_DEMAND, WARM, INDEX),
        (ON_DEMAND, MAXIMUM, INDEX),
        (ON_DEMAND, SSE, NO_INDEX),
        (ON_DEMAND, INDEX, SSE),
        (ON_DEMAND, NO_INDEX, STREAM),
        (ON_DEMAND, STREAM, INDEX_WARMTH),
    ],
)
def test_changes_of_other_kinds_start_while_one_is_in_progress(
    definition: TableDefinition, first: dict[str, Any], second: dict[str, Any]
):
    during = after_edit(edited(definition, first))
    both = edited(during, second)
    assert set(during.changing) <= set(both.changing)
    if during.status == "UPDATING":
        assert both.status == "UPDATING"
    assert settled(both).changing == ()


@pytest.mark.parametrize(
    ("definition", "first", "second", "text"),
    [
        (
            PROVISIONED,
            THROUGHPUT,
            {"throughput": Throughput(8, 8)},
            "Table IOPS are currently being updated. Table: table",
        ),
        (
            PROVISIONED,
            THROUGHPUT,
            SAME_MODE,
            "Table IOPS are currently being updated. Table: table",
        ),
        (
            PROVISIONED,
            THROUGHPUT,
            INDEX_UNITS,
            "Table IOPS are currently being updated. Table: table",
        ),
        (
            PROVISIONED,
            THROUGHPUT,
            INDEX_WITH_UNITS,
            "Can't create or delete indexes while table IOPS are being updated. Table: table",
        ),
        (
            PROVISIONED,
            THROUGHPUT,
            NO_INDEX,
            "Can't create or delete indexes while table IOPS are being updated. Table: table",
        ),
        (
            ON_DEMAND,
            STREAM,
            INDEX,
            "Can't create or delete an index when stream status is being updated. Table: table",
        ),
        (
            ON_DEMAND,
            STREAM,
            NO_INDEX,
            "Can't create or delete an index when stream status is being updated. Table: table",
        ),
        (
            ON_DEMAND,
            TABLE_CLASS,
            INDEX,
            (
                "Can't create or delete an index when a table class update is in progress. "
                "Table: table"
            ),
        ),
        (
            ON_DEMAND,
            TABLE_CLASS,
            STANDARD,
            "Can't update table class when a table class update is in progress. Table: table",
        ),
        (
            ON_DEMAND,
            TABLE_CLASS,
            TABLE_CLASS,
            "Can't update table class when a table class update is in progress. Table: table",
        ),
        (
            PROVISIONED,
            INDEX_WITH_UNITS,
            THROUGHPUT,
            "Can't change table IOPS when an index is being created. Table: table Indexes: [new]",
        ),
        (
            PROVISIONED,
            NO_INDEX,
            THROUGHPUT,
            (
                "Can't change table IOPS when an index is being deleted. Table: table "
                "Indexes: [present]"
            ),
        ),
        (
            ON_DEMAND,
            NO_INDEX,
            MAXIMUM,
            (
                "OnDemandThroughput cannot be updated while index deletion is in progress for "
                "indexes: [present]"
            ),
        ),
        (
            ON_DEMAND,
            INDEX,
            MAXIMUM,
            (
                "OnDemandThroughput cannot be updated while index creation is in progress for "
                "indexes: [new]"
            ),
        ),
        (ON_DEMAND, STREAM, NO_STREAM, "Table is being updated: table"),
        (ON_DEMAND, SSE, SSE, "Table is being updated: table"),
        (ON_DEMAND, WARM, WARMER, "Table is being updated: table"),
        (ON_DEMAND, MAXIMUM, OTHER_MAXIMUM, "Table is being updated: table"),
    ],
)
def test_a_change_is_refused_while_another_excludes_it(
    definition: TableDefinition, first: dict[str, Any], second: dict[str, Any], text: str
):
    during = after_edit(edited(definition, first))
    with pytest.raises(ResourceInUseException) as caught:
        edited(during, second)
    assert caught.value.message == IN_USE + text


@pytest.mark.parametrize(
    ("definition", "change", "text"),
    [
        (ON_DEMAND, STREAM, "Cannot delete table while stream is being enabled/disabled."),
        (PROVISIONED, THROUGHPUT, "Table: table is in the process of being updated."),
        (ON_DEMAND, SSE, "Table: table is in the process of being updated."),
        (ON_DEMAND, TABLE_CLASS, "Table: table is in the process of being updated."),
        (ON_DEMAND, MAXIMUM, "Table: table is in the process of being updated."),
        (
            ON_DEMAND,
            NO_INDEX,
            "Cannot delete table while indexes are being created, updated, or deleted.",
        ),
    ],
)
def test_a_table_is_not_deleted_during_a_change(
    definition: TableDefinition, change: dict[str, Any], text: str
):
    with pytest.raises(ResourceInUseException) as caught:
        check_deletable(after_edit(edited(definition, change)))
    assert caught.value.message == IN_USE + text


def test_a_table_is_deleted_while_it_warms_up():
    warming = after_edit(edited(ON_DEMAND, WARM))
    assert warming.changing
    check_deletable(warming)


def test_an_update_that_an_earlier_version_stored_ends_with_the_next_change():
    old = replace(edited(PROVISIONED, THROUGHPUT), changing=(), pending_throughput=Throughput(7, 7))
    changed = edited(replace(old, status="UPDATING"), PROTECTION)
    assert (changed.status, changed.throughput.read_units) == ("ACTIVE", 7)

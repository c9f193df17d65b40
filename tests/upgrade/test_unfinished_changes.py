"""This version completes changes of tables and indexes that an earlier one began."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.servers.upgraded import Written, check_whole, in_order, scanned, upgraded
from tests.support.tables.tables import wait_until_indexes_active
from tests.support.tables.ttl import status, wait_until

AN_HOUR = "3600"


def test_the_directory_has_every_kind_of_unfinished_change(written: Written):
    assert written.states == {
        "Fresh": "CREATING",
        "Retired": "DELETING",
        "Busy": "UPDATING",
        "Narrowed.of_author": "DELETING",
        "Widened.of_author": "CREATING, Backfilling False",
        "Catalogue.of_author": "CREATING, Backfilling True",
        "Visits.expires": "ENABLING",
        "Forgotten.expires": "DISABLING",
    }
    assert written.stored_phases["Restoring"] == "ITEMS"
    assert written.stored_phases["unfinished"] == "CREATING"


def test_temporary_states_are_the_same_after_the_upgrade(written: Written, directory: Path):
    lasting = ("--table-transition-seconds", AN_HOUR, "--index-allocation-seconds", AN_HOUR)
    with upgraded(written, directory, *lasting) as server:
        for name in ("Fresh", "Retired", "Busy"):
            table = server.wire("DescribeTable", {"TableName": name})["Table"]
            assert table["TableStatus"] == written.states[name]
        for name, shown in (("Narrowed", ("DELETING", None)), ("Widened", ("CREATING", False))):
            table = server.wire("DescribeTable", {"TableName": name})["Table"]
            (index,) = table["GlobalSecondaryIndexes"]
            assert (index["IndexStatus"], index.get("Backfilling")) == shown


def test_unfinished_changes_are_completed(written: Written, directory: Path):
    with upgraded(written, directory) as server:
        names = set(written.requests) | {"Restoring"}
        wait_until(lambda: set(server.wire("ListTables", {})["TableNames"]) == names)
        assert wait_until_indexes_active(server.wire, "Fresh")["ItemCount"] == 0
        units = wait_until_indexes_active(server.wire, "Busy")["ProvisionedThroughput"]
        assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (7, 9)
        narrowed = wait_until_indexes_active(server.wire, "Narrowed")
        assert "GlobalSecondaryIndexes" not in narrowed


@pytest.mark.parametrize("name", ["Catalogue", "Widened"])
def test_an_index_that_was_being_added_gets_an_entry_of_every_item(
    written: Written, directory: Path, name: str
):
    items = written.items[name]
    options = ("--throttling", "auto", "--gsi-lag", "awaited")
    with upgraded(written, directory, *options) as server:
        put, deleted = {**items[0], "author": {"S": "somebody"}}, items[-1]
        # The backfill of an index with few units may have used them all; time adds more.
        for operation, members in (
            ("PutItem", {"Item": put}),
            ("DeleteItem", {"Key": written.key(name, deleted)}),
        ):
            while server.wire.send(operation, {"TableName": name, **members}).status != 200:
                server.clock.step(1)
        while not is_active(server.wire("DescribeTable", {"TableName": name})["Table"]):
            server.clock.step(1)
        request = written.requests[name]
        check_whole(server.wire, name, request, [put, *items[1:-1]])


def is_active(table: dict[str, object]) -> bool:
    indexes = table["GlobalSecondaryIndexes"]
    assert isinstance(indexes, list)
    return all(index["IndexStatus"] == "ACTIVE" for index in indexes)


def test_a_restore_ends_with_all_items(written: Written, directory: Path):
    backup = written.backups["library"]
    with upgraded(written, directory) as server:
        wait_until_indexes_active(server.wire, "Restoring")
        check_whole(server.wire, "Restoring", backup["request"], backup["items"])


def test_time_to_live_becomes_enabled_or_disabled(written: Written, directory: Path):
    with upgraded(written, directory) as server:
        wait_until(lambda: status(server.wire, "Visits") == "ENABLED")
        wait_until(lambda: status(server.wire, "Forgotten") == "DISABLED")
        server.clock.set(now=written.last_expiry_epoch_seconds + 10)
        wait_until(lambda: not scanned(server.wire, "Visits"))
        kept = scanned(server.wire, "Forgotten")
        assert in_order(kept) == in_order(written.items["Forgotten"])

"""Changes of tables that are in progress when the server ends."""

from __future__ import annotations

import signal
from typing import Final

from scribe import Scribe
from serving import Serving
from tables import authors, switch_expiry

from tests.support.clients import WireClient
from tests.support.ttl import status, wait_until

# The number of entries that the half-filled index gets per second.
_ENTRIES_PER_SECOND: Final = 100


def half_fill(scribe: Scribe, serving: Serving) -> None:
    """Add an index with units for only a part of its entries."""
    add_index(scribe, "Catalogue", _ENTRIES_PER_SECOND)
    # The first page ends in the third second. Only then does the backfill store its cursor.
    for seconds in range(3):
        if seconds:
            serving.clock.step(1)
        wait_until(lambda events=seconds + 1: throttle_events(serving) == events)


def throttle_events(serving: Serving) -> float:
    """The number of waits of the backfill for units since the server started."""
    name = "dynactor_online_index_throttle_events_total"
    return serving.metric(name, table="Catalogue")


def add_index(scribe: Scribe, name: str, units: int) -> None:
    types = {"shelf": "S", "book": "N", "author": "S"}
    request = {
        "TableName": name,
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": of} for attribute, of in types.items()
        ],
        "GlobalSecondaryIndexUpdates": [{"Create": authors(units)}],
    }
    scribe.wire("UpdateTable", request)
    scribe.requests[name]["GlobalSecondaryIndexes"] = [authors(units)]


def begin_what_lasts(scribe: Scribe) -> dict[str, str]:
    """Begin a change of each kind; returns the states that were entered.

    The server must have been started with long transitions.
    """
    wire = scribe.wire
    scribe.create("Fresh", "id:S")
    scribe.delete_table("Retired")
    units = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 9}
    wire("UpdateTable", {"TableName": "Busy", "ProvisionedThroughput": units})
    scribe.requests["Busy"]["ProvisionedThroughput"] = units
    deletes = [{"Delete": {"IndexName": "of_author"}}]
    wire("UpdateTable", {"TableName": "Narrowed", "GlobalSecondaryIndexUpdates": deletes})
    del scribe.requests["Narrowed"]["GlobalSecondaryIndexes"]
    add_index(scribe, "Widened", 1000)
    switch_expiry(wire, "Visits", enabled=True)
    switch_expiry(wire, "Forgotten", enabled=False)
    tables = ("Fresh", "Retired", "Busy")
    indexed = ("Narrowed", "Widened", "Catalogue")
    return {
        **{name: table_status(wire, name) for name in tables},
        **{f"{name}.of_author": index_status(wire, name) for name in indexed},
        **{f"{name}.expires": status(wire, name) for name in ("Visits", "Forgotten")},
    }


def table_status(wire: WireClient, name: str) -> str:
    return str(wire("DescribeTable", {"TableName": name})["Table"]["TableStatus"])


def index_status(wire: WireClient, name: str) -> str:
    (index,) = wire("DescribeTable", {"TableName": name})["Table"]["GlobalSecondaryIndexes"]
    backfilling = f", Backfilling {index['Backfilling']}" if "Backfilling" in index else ""
    return index["IndexStatus"] + backfilling


def begin_copies_and_die(scribe: Scribe, serving: Serving) -> None:
    """Begin a backup and a restore, and kill the server while both are in their first phase."""
    wire = serving.wire
    source = scribe.backups["library"]["BackupArn"]
    made = wire("CreateBackup", {"TableName": "Library", "BackupName": "unfinished"})
    wire("RestoreTableFromBackup", {"TargetTableName": "Restoring", "BackupArn": source})
    serving.server.process.send_signal(signal.SIGKILL)
    serving.server.process.wait()
    scribe.note_backup("Library", "unfinished", made["BackupDetails"]["BackupArn"])

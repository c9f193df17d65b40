"""Write the data directory beside this file with the server of commit 6ee0983.

The server of that commit is started repeatedly as a process, on a virtual clock, with different
options, and used over HTTP. A real Kafka broker runs beside it, which needs Java 17 and Maven.
The last server is killed. The script makes two files: ``directory.tar.xz``, and ``written.json``
with the expected content of the directory. Items and changes are those of this script; ids, times
and tokens are those of the server's answers.

Run it in a checkout of that commit, whose ``tests.support`` it uses:

    git worktree add --detach /tmp/old 6ee0983
    make -C /tmp/old install
    script=$PWD/tests/upgrade/written_by_6ee0983/write.py
    cd /tmp/old && PYTHONPATH=. .venv/bin/python $script

Each run writes the same items, times and sequence numbers. Ids of tables and backups are random.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import answers
import packing
import tables
import unfinished
from scribe import Scribe, text
from serving import serving

from tests.support.clients import STREAMS_TARGET_PREFIX, WireClient
from tests.support.kafka_broker import KafkaBroker, running_broker
from tests.support.tables import global_index
from tests.support.ttl import wait_until

HERE: Final = Path(__file__).parent
ARCHIVE: Final = HERE / "directory.tar.xz"
EXPECTED: Final = HERE / "written.json"
MOST_BYTES: Final = 250_000

AN_HOUR: Final = "3600"


def main() -> None:
    with TemporaryDirectory() as folder:
        kafka = Path(folder) / "kafka"
        kafka.mkdir()
        directory = Path(folder) / "directory"
        with running_broker(kafka) as broker:
            written = write(directory, broker)
        rows = packing.stored_rows(directory)
        phases = packing.phases(rows)
        assert phases["Restoring"] == "ITEMS", "the server was killed too late: run this again"
        assert phases["unfinished"] == "CREATING", "the server was killed too late: run this again"
        written["stored_phases"] = phases
        # All kinds except reclaims of disk space, which exist only for seconds.
        assert {key[0] for key in rows} >= {*range(0x0C), 0x0D}
        packing.pack(directory, ARCHIVE)
    EXPECTED.write_text(packing.rendered(written, 3) + "\n")
    size_bytes = ARCHIVE.stat().st_size + EXPECTED.stat().st_size
    assert size_bytes < MOST_BYTES, size_bytes


def write(directory: Path, broker: KafkaBroker) -> dict[str, Any]:
    """Write the directory in several starts; returns its expected content."""
    scribe = Scribe()
    kafka = ("--kafka-bootstrap-servers", broker.bootstrap_servers, "--kafka-partitions", "3")
    silenced = write_most(scribe, directory, kafka)
    broker.stop()
    cut_off(scribe, directory, kafka)
    split(scribe, directory)
    write_books(scribe, directory)
    back_up(scribe, directory)
    with serving(scribe, directory) as filling:
        unfinished.half_fill(scribe, filling)
        now = filling.clock.now()
    noted = finish(scribe, directory)
    return {
        "commit": "6ee0983",
        "now_epoch_seconds": now,
        "last_expiry_epoch_seconds": tables.LAST_EXPIRY,
        **noted,
        "requests": scribe.requests,
        "items": scribe.items,
        "changes": scribe.changes,
        "disabled_stream": silenced,
        "backups": scribe.backups,
        # The number of events in each topic.
        "published": {"Events": 20, "CutOff": 20},
    }


def write_most(scribe: Scribe, directory: Path, kafka: tuple[str, ...]) -> dict[str, Any]:
    """Write most tables; returns the content of the disabled stream."""
    with serving(scribe, directory, *kafka, ttl_delay_seconds="0") as first:
        tables.write_key_tables(scribe)
        tables.write_orders(scribe)
        tables.write_accounts(scribe)
        silenced = tables.write_silent(scribe)
        tables.publish(scribe, first, "Events")
        tables.publish(scribe, first, "CutOff")
        scribe.create("Visits", "id:S")
        scribe.put("Visits", *(tables.session(f"{at}", tables.LAST_EXPIRY) for at in range(5)))
        scribe.create("Retired", "id:S", StreamSpecification=tables.KEYS_ONLY)
        scribe.put("Retired", {"id": text("a")})
        units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
        scribe.create("Busy", "id:S", BillingMode="PROVISIONED", ProvisionedThroughput=units)
        tables.write_sessions(scribe, first)
    return silenced


def cut_off(scribe: Scribe, directory: Path, kafka: tuple[str, ...]) -> None:
    """Write more than the retention for a broker that is away."""
    with serving(scribe, directory, *kafka, "--kafka-retention-bytes", "1000"):
        tables.write_events(scribe, "CutOff", range(20, 50))
        # The wire name of BROKEN is ENABLE_FAILED.
        wait_until(lambda: tables.destination_status(scribe.wire, "CutOff") == "ENABLE_FAILED")


def split(scribe: Scribe, directory: Path) -> None:
    """A table and an index of one partition each, which are split, with writes before and after."""
    with serving(scribe, directory, "--partitions-per-table", "1"):
        index = global_index("of_kind", "kind", "at")
        keys = ("sensor:S", "at:N", "kind:S")
        streamed = {"StreamSpecification": tables.IMAGES, "GlobalSecondaryIndexes": [index]}
        scribe.create("Readings", *keys, **streamed)
        tables.write_readings(scribe, range(tables.READINGS))
        # They are not published.
        tables.write_events(scribe, "Events", range(20, 35))
    # Without that option it has too few partitions for an on-demand table, and so has its index.
    with serving(scribe, directory, "--split-check-seconds", "0.1") as server:
        for name in ("", "of_kind"):
            labels = {"table": "Readings", "index": name}
            wait_until(lambda labels=labels: server.metric("dynactor_partitions", **labels) == 4)
    with serving(scribe, directory):
        tables.write_readings(scribe, range(tables.READINGS, 2 * tables.READINGS))


def write_books(scribe: Scribe, directory: Path) -> None:
    """Provisioned tables, each written in a separate second."""
    counts = {"Library": 100, "Narrowed": 20, "Widened": 20, "Catalogue": 420}
    with serving(scribe, directory) as server:
        for name, count in counts.items():
            server.clock.step(1)
            is_indexed = name in ("Library", "Narrowed")
            tables.write_books(scribe, name, count, is_indexed=is_indexed)


def back_up(scribe: Scribe, directory: Path) -> None:
    """Backups, also of a deleted table, and changes that they do not include."""
    with serving(scribe, directory) as server:
        server.clock.set(now=tables.END)
        scribe.back_up("Orders", "orders")
        scribe.back_up("Library", "library")
        index = global_index("of_rank", "rank:HASH")
        hash_key = [{"AttributeName": "id", "KeyType": "HASH"}]
        scribe.create(
            "Archive", "id:S", "rank:N", KeySchema=hash_key, GlobalSecondaryIndexes=[index]
        )
        ranked = ({"id": text(f"{at}"), "rank": {"N": f"{at}"}} for at in range(9))
        scribe.put("Archive", *ranked)
        scribe.back_up("Archive", "archive")
        scribe.delete_table("Archive")
        scribe.update("Orders", tables.order(2), status=text("lost"))
        scribe.delete("Orders", tables.order(3))


def finish(scribe: Scribe, directory: Path) -> dict[str, Any]:
    """Write with tokens, record the answers, begin long changes, and kill the server."""
    transitions = ("--table-transition-seconds", "--ttl-transition-seconds")
    allocation = ("--index-allocation-seconds", AN_HOUR)
    lasting = (part for option in transitions for part in (option, AN_HOUR))
    with (
        serving(scribe, directory, *lasting, *allocation) as last,
        closing(WireClient(last.server.endpoint, STREAMS_TARGET_PREFIX)) as streams,
    ):
        wire = last.wire
        tokens = write_with_tokens(scribe)
        states = unfinished.begin_what_lasts(scribe)
        arns = {name: answers.latest_stream(wire, name) for name in scribe.changes}
        described = {name: answers.described(wire, name) for name in sorted(scribe.requests)}
        of_orders = {"ResourceArn": described["Orders"]["TableArn"]}
        noted = {
            "states": states,
            "partition_counts": {
                name: int(last.metric("dynactor_partitions", table=name, index=""))
                for name in ("Orders", "Readings")
            },
            "tables": described,
            "tags": wire("ListTagsOfResource", of_orders)["Tags"],
            "contributor_insights": [
                wire("DescribeContributorInsights", {"TableName": "Orders", **index})
                for index in ({}, {"IndexName": "of_status"})
            ],
            "destinations": {
                name: wire("DescribeKinesisStreamingDestination", {"TableName": name})
                for name in ("Events", "CutOff")
            },
            "streams": {name: answers.stream(streams, arns[name]) for name in arns},
            "handed_out": answers.handed_out(wire, streams),
            "tokens": tokens,
        }
        scribe.sort_as_scanned()
        wait_until(lambda: last.metric("dynactor_index_lag_records") == 0)
        unfinished.begin_copies_and_die(scribe, last)
    return noted


def write_with_tokens(scribe: Scribe) -> list[dict[str, Any]]:
    """Transactions with valid tokens: each of them, and one that differs."""
    transactions = [
        ("TransactWriteItems", answers.transfer, {"a": 70, "b": 130}),
        ("ExecuteTransaction", answers.statements, {"b": 100, "c": 130}),
    ]
    for operation, request, balances in transactions:
        scribe.wire(operation, request(30))
        for account, balance in balances.items():
            key = {"id": text(account)}
            scribe.note("Accounts", key, {**key, "balance": {"N": f"{balance}"}})
    scribe.note("Accounts", {"id": text("f")}, {"id": text("f"), "balance": {"N": "0"}})
    scribe.note("Accounts", {"id": text("e")}, None)
    return [
        {"operation": operation, "done": request(30), "other": request(31)}
        for operation, request, _ in transactions
    ]


if __name__ == "__main__":
    main()

"""Partitions of an earlier version are split."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.servers.upgraded import Written, check_whole, upgraded
from tests.support.streams.streams import records_of, shards_of
from tests.support.tables.ttl import wait_until

SPLITTING = (
    *("--split-check-seconds", "0.05", "--partition-limit-bytes", "20000"),
    *("--gsi-lag", "awaited"),
)
# The table has four partitions.
TEXT = {"S": "x" * 6_000}


@pytest.mark.parametrize("name", ["Orders", "Readings"])
def test_a_split_loses_no_item_entry_or_change(written: Written, directory: Path, name: str):
    request, items = written.requests[name], written.items[name]
    before, count = written.streams[name], written.partition_counts[name]
    with upgraded(written, directory, *SPLITTING) as server:
        changed = [item | {"new": TEXT} for item in items]
        for item in changed:
            server.wire("PutItem", {"TableName": name, "Item": item})
        wait_until(lambda: server.partition_count(name) > count)
        check_whole(server.wire, name, request, changed)
        shards = {shard["ShardId"] for shard in shards_of(server.streams, before["StreamArn"])}
        assert shards > {shard["ShardId"] for shard in before["shards"]}
        records = records_of(server.streams, before["StreamArn"])
        assert len(records) == len(written.changes[name]) + len(items)

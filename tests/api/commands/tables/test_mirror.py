"""Mirrors between two databases while the source changes, splits, and deletes its records."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio import fail_after
from anyio.lowlevel import checkpoint

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import KeepStreams
from dynactor.api.commands.tables.mirror import final_writes
from dynactor.api.commands.tables.mirror_command import (
    DIFFERENT,
    DONE,
    MirrorOptions,
    MirrorRun,
)
from dynactor.api.commands.tables.mirror_state import StateFile
from dynactor.api.commands.tables.mirror_tables import Side
from dynactor.api.commands.tables.table_copy import MIRROR_TAG, creation_request
from dynactor.api.commands.tables.terminal_progress import TerminalProgress
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.streams.shard import ShardSettings
from tests.support.clients.database_endpoint import DatabaseEndpoint, no_pause
from tests.support.databases.databases import SetClock, running_database
from tests.support.databases.splitting import halve
from tests.support.environment.hanging import HANG_SECONDS

ITEMS = 60
DAY_SECONDS = 86_400.0
KEY = {
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


class Pair:
    """The table ``music`` at one endpoint, and its copy at another one."""

    def __init__(self, source: Database, copy: Database, clock: SetClock, path: Path) -> None:
        self.database = source
        self.clock = clock
        self.source = DatabaseEndpoint(source)
        self.copy = DatabaseEndpoint(copy)
        self.path = path

    def run(self, **options: Any) -> MirrorRun:
        """The command with these options, until the copy has caught up."""
        return self._run(Side(self.source, "music"), Side(self.copy, "copy"), self.path, options)

    def reverse(self, **options: Any) -> MirrorRun:
        """The command in the opposite direction."""
        path = self.path.with_suffix(".reverse")
        return self._run(Side(self.copy, "copy"), Side(self.source, "music"), path, options)

    def _run(self, source: Side, target: Side, path: Path, options: dict[str, Any]) -> MirrorRun:
        chosen = {"create": True, "enable_stream": True, "until_caught_up": True, "segments": 2}
        return MirrorRun(
            MirrorOptions(source="from", target="to", **{**chosen, **options}),
            source,
            target,
            file=StateFile(path, source.table_name, target.table_name),
            lines=TerminalProgress(),
            pause=no_pause,
        )

    async def put(self, name: str, value: str = "") -> None:
        """Put an item into the source."""
        item = {"pk": {"S": name}, "v": {"S": value}}
        await self.source.call("PutItem", {"TableName": "music", "Item": item})

    async def delete(self, name: str) -> None:
        """Delete an item from the source."""
        await self.source.call("DeleteItem", {"TableName": "music", "Key": {"pk": {"S": name}}})

    async def are_equal(self) -> bool:
        """Whether both tables have the same items."""
        return await self.source.items("music") == await self.copy.items("copy")


@asynccontextmanager
async def running_pair(
    tmp_path: Path, *, copy_transition_seconds: float = 0.0, **settings: Any
) -> AsyncIterator[Pair]:
    clock = SetClock()
    settings = {"partitions_per_table": 2, "keep_streams_seconds": DAY_SECONDS, **settings}
    async with (
        running_database(clock=clock, **settings) as source,
        running_database(
            partitions_per_table=1, table_transition_seconds=copy_transition_seconds
        ) as copy,
    ):
        pair = Pair(source, copy, clock, tmp_path / "state.json")
        await pair.source.call("CreateTable", {"TableName": "music", **KEY})
        for number in range(ITEMS):
            await pair.put(f"song {number}", "first")
        yield pair


async def test_changes_during_the_scan_and_after_it_reach_the_copy(tmp_path: Path):
    async with running_pair(tmp_path) as pair:

        async def change(operation: str) -> None:
            if operation == "Scan":
                number = len(pair.source.calls)
                pair.source.before = None
                await pair.put("song 1", f"during the scan {number}")
                await pair.put(f"new {number}")
                await pair.delete("song 2")
                pair.source.before = change

        pair.source.before = change
        assert await pair.run().mirror() == DONE
        pair.source.before = None
        assert await pair.are_equal()
        await pair.put("song 3", "replaced at once")
        await pair.put("song 3", "after it")
        await pair.delete("song 4")
        assert not await pair.are_equal()
        pair.source.calls.clear()
        assert await pair.run(verify=True).mirror() == DONE
        assert await pair.are_equal()


async def test_a_stopped_mirror_continues_from_its_state(tmp_path: Path):
    class Stopped(Exception):
        pass

    async with running_pair(tmp_path) as pair:

        async def stop(operation: str) -> None:
            if operation == "BatchWriteItem" and pair.copy.calls.count(operation) == 2:
                # Batches are sent concurrently, and the first one must be written.
                while not await pair.copy.items("copy"):
                    await checkpoint()
                raise Stopped

        pair.copy.before = stop
        with pytest.raises(BaseExceptionGroup):
            await pair.run(segments=1).mirror()
        pair.copy.before = None
        assert 0 < len(await pair.copy.items("copy")) < ITEMS
        await pair.put("song 5", "while it was stopped")
        assert await pair.run().mirror() == DONE
        assert await pair.are_equal()
        # The copy is complete, so a third run reads only the stream.
        pair.source.calls.clear()
        await pair.run().mirror()
        assert "Scan" not in pair.source.calls


async def test_changes_are_followed_through_splits_and_rolled_shards(tmp_path: Path):
    async with running_pair(tmp_path, streams=ShardSettings(shard_roll_seconds=600)) as pair:
        await pair.run().mirror()
        await pair.put("song 6", "before the split")

        async def split_and_roll(operation: str) -> None:
            if operation == "GetRecords":
                pair.source.before = None
                table = pair.database.table("music")
                await halve(pair.database, table, table.record.partitions[0].number)
                await pair.put("song 6", "after the split")
                pair.clock.step(700)
                await pair.database.actor.mailbox.put_nowait(KeepStreams(), always=True)
                for number in range(ITEMS):
                    await pair.put(f"song {number}", "after the roll")

        pair.source.before = split_and_roll
        await pair.run().mirror()
        assert await pair.are_equal()


async def test_a_copy_starts_again_after_records_were_deleted_unread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    async with running_pair(tmp_path) as pair:
        await pair.run().mirror()
        await pair.put("song 7", "deleted record")
        await pair.delete("song 8")
        pair.clock.step(DAY_SECONDS + 1)
        await pair.database.actor.mailbox.put_nowait(KeepStreams(), always=True)
        await pair.put("song 9", "new record")
        await pair.run().mirror()
        assert "the copy starts again" in capsys.readouterr().err
        assert await pair.are_equal()


async def test_a_scan_that_takes_longer_than_the_stream_keeps_records_ends_the_mirror(
    tmp_path: Path,
):
    async with running_pair(tmp_path) as pair:

        async def delete_records(operation: str) -> None:
            if operation == "Scan":
                pair.source.before = None
                await pair.put("song 1", "deleted record")
                pair.clock.step(DAY_SECONDS + 1)
                await pair.database.actor.mailbox.put_nowait(KeepStreams(), always=True)
                await pair.put("song 1", "new record")
                pair.source.before = delete_records

        pair.source.before = delete_records
        with fail_after(HANG_SECONDS), pytest.raises(TransferFailed, match="use more --segments"):
            await pair.run(segments=1).mirror()
        assert pair.source.calls.count("Scan") == 2
        pair.source.before = None
        assert await pair.run().mirror() == DONE
        assert await pair.are_equal()


async def test_a_copy_starts_again_with_another_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    async with running_pair(tmp_path) as pair:
        await pair.run().mirror()
        off = {"StreamSpecification": {"StreamEnabled": False}}
        await pair.source.call("UpdateTable", {"TableName": "music", **off})
        await pair.delete("song 10")
        pair.clock.step(1)
        await pair.run().mirror()
        assert "The stream is another one" in capsys.readouterr().err
        assert await pair.are_equal()


async def test_a_table_with_other_items_is_only_replaced_on_request(tmp_path: Path):
    async with running_pair(tmp_path) as pair:
        await pair.copy.call("CreateTable", {"TableName": "copy", **KEY})
        other = {"TableName": "copy", "Item": {"pk": {"S": "other"}}}
        await pair.copy.call("PutItem", other)
        with pytest.raises(TransferFailed, match="--replace"):
            await pair.run().mirror()
        assert await pair.copy.items("copy") == [other["Item"]]
        assert await pair.run(replace=True).mirror() == DONE
        assert await pair.are_equal()


async def test_verify_lists_the_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    async with running_pair(tmp_path) as pair:
        await pair.run().mirror()
        capsys.readouterr()
        for name, item in {"song 1": {"v": {"S": "wrong"}}, "extra": {}}.items():
            full = {"pk": {"S": name}, **item}
            await pair.copy.call("PutItem", {"TableName": "copy", "Item": full})
        await pair.copy.call("DeleteItem", {"TableName": "copy", "Key": {"pk": {"S": "song 2"}}})
        assert await pair.run(verify=True).mirror() == DIFFERENT
        assert sorted(capsys.readouterr().out.splitlines()) == [
            'different  {"pk":{"S":"song 1"}}',
            'missing  {"pk":{"S":"song 2"}}',
            'surplus  {"pk":{"S":"extra"}}',
        ]


async def test_expired_items_that_only_the_source_has_are_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    async with running_pair(tmp_path) as pair:
        ttl = {"Enabled": True, "AttributeName": "e"}
        await pair.source.call(
            "UpdateTimeToLive", {"TableName": "music", "TimeToLiveSpecification": ttl}
        )
        now = int(time.time())
        # Time to live keeps items that are older than 5 years.
        for name, age_seconds in {"expired": 10, "old": 2_000 * 86_400}.items():
            item = {"pk": {"S": name}, "e": {"N": str(now - age_seconds)}}
            await pair.source.call("PutItem", {"TableName": "music", "Item": item})
        await pair.run().mirror()
        for name in ("expired", "old"):
            key = {"pk": {"S": name}}
            await pair.copy.call("DeleteItem", {"TableName": "copy", "Key": key})
        capsys.readouterr()
        assert await pair.run(verify=True).mirror() == DIFFERENT
        shown = capsys.readouterr()
        assert shown.out == 'missing  {"pk":{"S":"old"}}\n'
        assert "1 expired items are only in the source" in shown.err


async def test_a_copy_that_is_still_being_created_is_awaited(tmp_path: Path):
    async with running_pair(tmp_path, copy_transition_seconds=1.0) as pair:
        await pair.copy.call("CreateTable", {"TableName": "copy", **KEY})
        described = await pair.copy.call("DescribeTable", {"TableName": "copy"})
        assert described["Table"]["TableStatus"] == "CREATING"
        assert await pair.run().mirror() == DONE
        assert await pair.are_equal()


async def test_two_mirrors_in_opposite_directions_are_refused(tmp_path: Path):
    async with running_pair(tmp_path) as pair:
        met: list[str] = []

        async def meet(operation: str) -> None:
            if operation == "Scan" and not met:
                met.append("")
                with pytest.raises(TransferFailed, match="opposite direction") as refusal:
                    await pair.reverse(replace=True).mirror()
                met[0] = str(refusal.value)

        pair.source.before = meet
        await pair.run().mirror()
        assert MIRROR_TAG in met[0]
        # The first mirror has ended, so the other direction is free.
        assert await pair.reverse(replace=True).mirror() == DONE


async def test_a_source_needs_a_stream_with_new_images(tmp_path: Path):
    async with running_pair(tmp_path) as pair:
        with pytest.raises(TransferFailed, match="--enable-stream"):
            await pair.run(enable_stream=False).mirror()
        with pytest.raises(TransferFailed, match="--create"):
            await pair.run(create=False).mirror()
        keys_only = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        await pair.source.call(
            "UpdateTable", {"TableName": "music", "StreamSpecification": keys_only}
        )
        with pytest.raises(TransferFailed, match="KEYS_ONLY"):
            await pair.run().mirror()


async def test_one_process_uses_a_state_and_another_mirror_is_refused(tmp_path: Path):
    async with running_pair(tmp_path) as pair:
        await pair.run().mirror()
        with pytest.raises(TransferFailed, match="belongs to the mirror"):
            StateFile(pair.path, "other", "copy").load()
        file = StateFile(pair.path, "music", "copy")
        with (
            file.locked(),
            pytest.raises(TransferFailed, match="Another process"),
            StateFile(pair.path, "music", "copy").locked(),
        ):
            pass
        pair.path.write_text("{}")
        with pytest.raises(TransferFailed, match="not the state of a mirror"):
            file.load()


def test_only_the_last_record_of_a_key_is_written():
    first = {"Keys": {"n": {"N": "1"}}, "NewImage": {"n": {"N": "1"}, "v": {"S": "a"}}}
    other = {"Keys": {"n": {"N": "2"}}, "NewImage": {"n": {"N": "2"}}}
    # The same key in another spelling.
    last = {"Keys": {"n": {"N": "1.0"}}}
    assert final_writes([first, other, last]) == [
        {"DeleteRequest": {"Key": {"n": {"N": "1.0"}}}},
        {"PutRequest": {"Item": {"n": {"N": "2"}}}},
    ]


def test_a_copy_is_created_with_indexes_capacity_and_tags():
    index = {
        "IndexName": "by_v",
        "KeySchema": [{"AttributeName": "v", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}
    described: dict[str, Any] = {
        **KEY,
        "ProvisionedThroughput": {**units, "NumberOfDecreasesToday": 1},
        "GlobalSecondaryIndexes": [
            {**index, "ProvisionedThroughput": units, "IndexStatus": "ACTIVE", "ItemCount": 1},
            {**index, "IndexName": "old", "IndexStatus": "DELETING"},
        ],
        "LocalSecondaryIndexes": [{**index, "IndexArn": "arn"}],
        "TableClassSummary": {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
    }
    tags = [
        {"Key": "team", "Value": "a"},
        {"Key": "aws:x", "Value": ""},
        {"Key": MIRROR_TAG, "Value": ""},
    ]
    assert creation_request(described, "copy", tags) == {
        **KEY,
        "TableName": "copy",
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": units,
        "GlobalSecondaryIndexes": [{**index, "ProvisionedThroughput": units}],
        "LocalSecondaryIndexes": [index],
        "TableClass": "STANDARD_INFREQUENT_ACCESS",
        "Tags": tags[:1],
    }

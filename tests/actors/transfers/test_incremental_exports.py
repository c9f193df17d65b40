"""An incremental export has one record for each item that changed in a period."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from msgspec import json

from dynactor.actors.backups.table_backups import TableBackups
from tests.support.databases.databases import SetClock, TickingClock
from tests.support.databases.splitting import halve
from tests.support.databases.transferred import (
    BUCKET,
    THREAD,
    Transfers,
    item,
    transferring,
    unknown_members,
)

RECOVERY: Final = {"PointInTimeRecoveryEnabled": True}
_ITEMS: Final = 30
_QUARTER: Final = 15 * 60


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pages so short that the copy needs several."""
    monkeypatch.setattr("dynactor.actors.followers.log_positions._RECORDS", 7)


class Changes:
    """Random writes, and the records that an export of them must have."""

    def __init__(self, call: Transfers, clock: SetClock, seed: int) -> None:
        self._call = call
        self._clock = clock
        self._draw = Random(seed)
        self._items: dict[str, dict[str, Any]] = {}
        self._first: dict[str, dict[str, Any] | None] = {}
        self._times: dict[str, int] = {}

    def begin_period(self) -> None:
        """Forget the changes up to now."""
        self._first.clear()
        self._times.clear()

    async def write(self, writes: int) -> None:
        """Put and delete items, split partitions, and advance the clock."""
        table = self._call.client.database.table("Thread")
        for _ in range(writes):
            number = self._draw.randrange(_ITEMS)
            new = item(number) | {"text": {"S": str(self._draw.randrange(1_000_000))}}
            key = {name: new[name] for name in ("pk", "n")}
            old = self._items.get(str(key))
            if self._draw.randrange(3):
                await self._call("PutItem", TableName="Thread", Item=new)
                self._items[str(key)] = new
            else:
                await self._call("DeleteItem", TableName="Thread", Key=key)
                self._items.pop(str(key), None)
                if old is None:
                    continue
            self._first.setdefault(str(key), old)
            self._times[str(key)] = int(self._clock.now_epoch_seconds() * 1_000_000)
            self._clock.step(self._draw.choice((0, 0.25, 7)))
            if not self._draw.randrange(40):
                number = self._draw.choice(table.record.partitions).number
                await halve(self._call.client.database, table, number)

    def filtered_state(self, digit: str) -> dict[str, dict[str, Any]]:
        """The texts and sets of the items whose text has a digit, by key."""
        return {
            key: {name: each[name] for name in ("text", "strings")}
            for key, each in self._items.items()
            if digit in each["text"]["S"]
        }

    def expected(self) -> list[dict[str, Any]]:
        """The records of the changes since the beginning of the period."""
        found = []
        for key, old in self._first.items():
            new = self._items.get(key)
            either = old or new
            if either is None:
                continue
            record: dict[str, Any] = {
                "Metadata": {"WriteTimestampMicros": {"N": str(self._times[key])}},
                "Keys": {name: either[name] for name in ("pk", "n")},
            }
            if old is not None:
                record["OldImage"] = old
            if new is not None:
                record["NewImage"] = new
            found.append(record)
        return sorted(found, key=repr)


def records_of(directory: Path, description: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records in the files that the manifest of an export lists, sorted."""
    summary = json.decode((directory / description["ExportManifest"]).read_bytes())
    files = (directory / summary["manifestFilesS3Key"]).read_bytes().splitlines()
    found = []
    for file in map(json.decode, files):
        lines = gzip.decompress((directory / file["dataFileS3Key"]).read_bytes()).splitlines()
        assert len(lines) == file["itemCount"]
        found += map(json.decode, lines)
    return sorted(found, key=repr)


async def exported(
    call: Transfers,
    form: str = "DYNAMODB_JSON",
    *,
    filtered_by: Mapping[str, Any] | None = None,
    **period: Any,
) -> dict[str, Any]:
    filters = {} if filtered_by is None else {"FilterSpecification": filtered_by}
    return await call.export(
        ExportType="INCREMENTAL_EXPORT",
        ExportFormat=form,
        IncrementalExportSpecification=period,
        **filters,
    )


@pytest.mark.parametrize("seed", [1, 2])
async def test_an_incremental_export_has_the_changes_of_its_period(
    tmp_path: Path, seed: int
) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await create_recoverable(call)
        changes = Changes(call, clock, seed)
        await changes.write(60)
        clock.step(1)
        begin = clock.now_epoch_seconds()
        changes.begin_period()
        await changes.write(150)
        clock.step(_QUARTER)
        end, expected = clock.now_epoch_seconds(), changes.expected()
        await changes.write(40)
        period = {"ExportFromTime": begin, "ExportToTime": end}
        found = await exported(call, **period)
        assert found["ExportStatus"] == "COMPLETED"
        assert found["ItemCount"] == len(expected)
        assert records_of(call.directory, found) == expected
        only_new = await exported(call, **period, ExportViewType="NEW_IMAGE")
        assert records_of(call.directory, only_new) == sorted(
            (
                {name: each for name, each in record.items() if name != "OldImage"}
                for record in expected
            ),
            key=repr,
        )
        described = {"ExportDescription": found}
        assert unknown_members("DescribeExport", described) == []
        listed = await call("ListExports")
        assert {each["ExportType"] for each in listed["ExportSummaries"]} == {"INCREMENTAL_EXPORT"}


@pytest.mark.parametrize("view", ["NEW_AND_OLD_IMAGES", "NEW_IMAGE"])
async def test_filtered_changes_lead_from_one_filtered_state_to_the_next(
    tmp_path: Path, view: str
) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await create_recoverable(call)
        changes = Changes(call, clock, 3)
        await changes.write(60)
        clock.step(1)
        wanted = {
            "FilterExpression": "contains(#t, :digit)",
            "ProjectionExpression": "#t, strings",
            "ExpressionAttributeNames": {"#t": "text"},
            "ExpressionAttributeValues": {":digit": {"S": "7"}},
        }
        begin = clock.now_epoch_seconds()
        before = changes.filtered_state("7")
        changes.begin_period()
        await changes.write(150)
        clock.step(_QUARTER)
        found = await exported(
            call,
            ExportFromTime=begin,
            ExportToTime=clock.now_epoch_seconds(),
            ExportViewType=view,
            filtered_by=wanted,
        )
        assert found["FilterSpecification"] == wanted
        after = changes.filtered_state("7")
        state, transitions = dict(before), set()
        for record in records_of(call.directory, found):
            key = str(record["Keys"])
            old, new = state.pop(key, None), record.get("NewImage")
            assert record.get("OldImage") == (old if view == "NEW_AND_OLD_IMAGES" else None)
            if new is not None:
                state[key] = new
            transitions.add((old is not None, new is not None))
        assert state == after
        assert len(transitions) == 3, "items begin to match, match twice, and match no more"
        everything = await exported(
            call, ExportFromTime=begin, ExportToTime=clock.now_epoch_seconds(), ExportViewType=view
        )
        assert everything["ItemCount"] > found["ItemCount"]
        assert everything["BilledSizeBytes"] == found["BilledSizeBytes"]


async def test_filtered_changes_of_ion_have_the_same_images(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await create_recoverable(call)
        begin = clock.now_epoch_seconds()
        for number in (1, 2):
            await call("PutItem", TableName="Thread", Item=item(number))
        clock.step(_QUARTER)
        wanted = {
            "KeyConditionExpression": "pk = :pk",
            "ProjectionExpression": "numbers",
            "ExpressionAttributeValues": {":pk": {"S": "p2"}},
        }
        found = await exported(call, "ION", ExportFromTime=begin, filtered_by=wanted)
        (file,) = [
            lines
            for path in call.directory.rglob("*.ion.gz")
            if (lines := gzip.decompress(path.read_bytes()))
        ]
        assert found["ItemCount"] == 1
        assert file.endswith(b'Keys:{pk:"p2",n:2.},NewImage:{numbers:$dynamodb_NS::[1.,2.]}}\n'), (
            file
        )


async def create_recoverable(call: Transfers) -> None:
    """Create the table with point-in-time recovery."""
    await call.create()
    await call(
        "UpdateContinuousBackups", TableName="Thread", PointInTimeRecoverySpecification=RECOVERY
    )


async def test_an_incremental_export_has_the_documented_layout(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await create_recoverable(call)
        begin = clock.now_epoch_seconds()
        await call("PutItem", TableName="Thread", Item=item(1))
        clock.step(_QUARTER)
        found = await exported(call, ExportFromTime=begin)
        assert found["IncrementalExportSpecification"] == {
            "ExportFromTime": begin,
            "ExportToTime": pytest.approx(clock.now_epoch_seconds(), abs=0.001),
            "ExportViewType": "NEW_AND_OLD_IMAGES",
        }
        assert "ExportTime" not in found
        summary = json.decode((call.directory / found["ExportManifest"]).read_bytes())
        assert summary["exportType"] == "INCREMENTAL_EXPORT"
        assert summary["outputView"] == "NEW_AND_OLD_IMAGES"
        assert summary["exportFromTime"] == "2026-11-20T11:45:36.489Z"
        assert summary["exportToTime"] == "2026-11-20T12:00:36.489Z"
        assert "exportTime" not in summary
        data = {path.parent for path in call.directory.rglob("*.json.gz")}
        assert data == {call.directory / "AWSDynamoDB" / "data"}


async def test_the_next_period_begins_where_an_export_without_an_end_ends(tmp_path: Path) -> None:
    clock = TickingClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await create_recoverable(call)
        begin = clock.now_epoch_seconds()
        clock.step(_QUARTER)
        clock.is_ticking = True
        begun = await call(
            "ExportTableToPointInTime",
            TableArn=THREAD,
            S3Bucket=BUCKET,
            ExportType="INCREMENTAL_EXPORT",
            IncrementalExportSpecification={"ExportFromTime": begin},
        )
        period = begun["ExportDescription"]["IncrementalExportSpecification"]
        (backup,) = call.client.database.part(TableBackups)._backups.values()
        assert backup.changes_until_us == round(period["ExportToTime"] * 1_000_000)


@pytest.mark.parametrize(
    ("period", "error"),
    [
        ({}, "ValidationException"),
        ({"ExportFromTime": -_QUARTER + 1}, "InvalidExportTimeException"),
        ({"ExportFromTime": -86_401}, "InvalidExportTimeException"),
        ({"ExportFromTime": -7_200}, "InvalidExportTimeException"),
        ({"ExportFromTime": -1_000, "ExportToTime": 100}, "InvalidExportTimeException"),
    ],
)
async def test_other_periods_are_refused(
    tmp_path: Path, period: dict[str, int], error: str
) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await create_recoverable(call)
        clock.step(3_600)
        now = clock.now_epoch_seconds()
        refusal = await call.refused(
            "ExportTableToPointInTime",
            TableArn=THREAD,
            S3Bucket=BUCKET,
            ExportType="INCREMENTAL_EXPORT",
            IncrementalExportSpecification={name: now + at for name, at in period.items()},
        )
        assert refusal[0] == error


@pytest.mark.parametrize(
    "members",
    [
        {"ExportType": "INCREMENTAL_EXPORT"},
        {"IncrementalExportSpecification": {"ExportFromTime": 1}},
        {
            "ExportType": "INCREMENTAL_EXPORT",
            "IncrementalExportSpecification": {"ExportFromTime": 1},
            "ExportTime": 1,
        },
    ],
)
async def test_contradictory_requests_are_refused(
    tmp_path: Path, members: dict[str, object]
) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        refusal = await call.refused(
            "ExportTableToPointInTime", TableArn=THREAD, S3Bucket=BUCKET, **members
        )
        assert refusal[0] == "ValidationException"


async def test_a_table_without_recovery_has_no_incremental_export(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await call.create()
        refusal = await call.refused(
            "ExportTableToPointInTime",
            TableArn=THREAD,
            S3Bucket=BUCKET,
            ExportType="INCREMENTAL_EXPORT",
            IncrementalExportSpecification={"ExportFromTime": clock.now_epoch_seconds() - 1_000},
        )
        assert refusal[0] == "PointInTimeRecoveryUnavailableException"


async def test_a_short_period_is_named(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await create_recoverable(call)
        clock.step(3_600)
        refusal = await call.refused(
            "ExportTableToPointInTime",
            TableArn=THREAD,
            S3Bucket=BUCKET,
            ExportType="INCREMENTAL_EXPORT",
            IncrementalExportSpecification={
                "ExportFromTime": clock.now_epoch_seconds() - _QUARTER + 1
            },
        )
        assert refusal == (
            "InvalidExportTimeException",
            (
                "Difference between export period from time and export period to time is less "
                "than 15 minutes"
            ),
        )

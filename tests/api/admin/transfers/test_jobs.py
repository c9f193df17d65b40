"""Imports, exports and bulk operations are listed and canceled over the admin port."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from dynactor.actors.transfers import import_rows
from dynactor.actors.transfers.table_exports import CancelExport, TableExports
from dynactor.api.admin_port.listener import Administered, serving_admin
from dynactor.api.http.browser_access import Access
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import listen
from tests.support.databases.databases import running_database
from tests.support.databases.transferred import (
    BUCKET,
    KEYS,
    THREAD,
    Transfers,
    bulk_put_request,
    import_request,
    item,
    lines,
)
from tests.support.servers.admin import ask
from tests.support.servers.in_process import InProcessClient

_DEADLINE_SECONDS = 60


class Jobs(NamedTuple):
    """A client of the database, and of its admin port."""

    call: Transfers
    port: int

    async def ask(self, path: str, method: str = "GET") -> Any:
        answer = await asyncio.to_thread(ask, self.port, path, method)
        return answer.status, answer.json

    async def listed(self) -> list[dict[str, Any]]:
        status, answer = await self.ask("/jobs")
        assert status == 200
        jobs: list[dict[str, Any]] = answer["jobs"]
        return jobs


@asynccontextmanager
async def administered(directory: Path, **settings: Any) -> AsyncIterator[Jobs]:
    """A database with a bucket in a directory, and with an admin port."""
    await asyncio.to_thread(directory.mkdir)
    async with running_database(buckets={BUCKET: f"file://{directory}"}, **settings) as database:
        parts = Administered(database._store.figures, Protocol(database, ()))
        with listen("127.0.0.1", 0) as listener:
            async with serving_admin(parts, Access(), listener):
                port = listener.getsockname()[1]
                yield Jobs(Transfers(InProcessClient(database), directory), port)
                # The listener answers requests in flight before it closes.
                await asyncio.sleep(0)


def id_of(arn: str) -> str:
    return arn.rpartition("/")[2]


async def test_an_import_that_gives_no_rows_is_canceled_and_leaves_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    silent.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(silent))
    monkeypatch.setattr(import_rows, "_PROCESS_BYTES", 0)
    with anyio.fail_after(_DEADLINE_SECONDS):
        async with administered(tmp_path / "b") as here:
            here.call.write("in/a", lines(item(1)))
            begun = await here.call("ImportTable", **import_request())
            arn = begun["ImportTableDescription"]["ImportArn"]
            (job,) = await here.listed()
            assert (job["id"], job["kind"], job["table"]) == (id_of(arn), "import", "Imported")
            assert (job["status"], job["end"]) == ("IN_PROGRESS", None)
            status, canceled = await here.ask(f"/jobs/{id_of(arn)}", "DELETE")
            assert (status, canceled["status"]) == (200, "CANCELLED")
            found = await here.call.imported(arn)
            assert (found["ImportStatus"], found["FailureCode"]) == ("CANCELLED", "ImportCancelled")
            assert (await here.call("ListTables"))["TableNames"] == []
            # The cancellation can be repeated, and the name is free.
            assert await here.ask(f"/jobs/{id_of(arn)}", "DELETE") == (200, canceled)
            await here.call.create("Imported")


@pytest.mark.parametrize("phase", ["COPYING", "WRITING"])
async def test_an_export_is_canceled_in_each_phase(tmp_path: Path, phase: str) -> None:
    with anyio.fail_after(_DEADLINE_SECONDS):
        async with running_database(buckets={BUCKET: f"file://{tmp_path}"}) as database:
            call = Transfers(InProcessClient(database), tmp_path)
            await call.create(items=10)
            begun = await call("ExportTableToPointInTime", TableArn=THREAD, S3Bucket=BUCKET)
            arn = begun["ExportDescription"]["ExportArn"]
            while True:
                found = database.part(TableExports).find(id_of(arn))
                assert found is not None
                if found.phase == phase:
                    break
                await asyncio.sleep(0)
            canceled = await database.ask(CancelExport(id_of(arn)))
            assert (canceled.status, canceled.failure_code) == ("FAILED", "ExportCancelled")
            assert (await call.exported(arn))["FailureMessage"] == "An operator canceled the export"
            assert not call.written("manifest-summary.json")
            # The table is exported again, and deleted.
            assert (await call.export())["ExportStatus"] == "COMPLETED"
            await call("DeleteTable", TableName="Thread")


async def test_jobs_that_are_over_are_listed_and_stay_as_they_are(tmp_path: Path) -> None:
    async with administered(tmp_path / "b") as here:
        here.call.write("in/a", lines(item(1), item(2)))
        imported = await here.call.import_()
        exported = await here.call.export("Imported")
        put = await here.call.bulk_put(table="Imported")
        jobs = await here.listed()
        wanted = {
            id_of(imported["ImportArn"]): ("import", "COMPLETED", 2),
            id_of(exported["ExportArn"]): ("export", "COMPLETED", 2),
            id_of(put["BulkOperationArn"]): ("bulk-operation", "COMPLETED", 2),
        }
        assert [each["id"] for each in jobs] == sorted(wanted, reverse=True)
        for job in jobs:
            assert (job["kind"], job["status"], job["items"]) == wanted[job["id"]]
            assert await here.ask(f"/jobs/{job['id']}", "DELETE") == (200, job)


async def test_a_bulk_operation_is_canceled(tmp_path: Path) -> None:
    # Without units, the operation waits forever.
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    settings = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units}
    async with administered(tmp_path / "b", initial_burst_seconds=0) as here:
        await here.call("CreateTable", TableName="Thread", **KEYS | settings)
        here.call.write("in/a", lines(*map(item, range(600))))
        begun = await here.call("StartBulkPutItems", **bulk_put_request())
        arn = begun["BulkOperationDescription"]["BulkOperationArn"]
        status, canceled = await here.ask(f"/jobs/{id_of(arn)}", "DELETE")
        assert (status, canceled["status"]) == (200, "CANCELLING")
        assert (await here.call.bulk_ended(arn))["BulkOperationStatus"] == "CANCELLED"


async def test_other_requests_for_jobs_are_refused(tmp_path: Path) -> None:
    async with administered(tmp_path / "b") as here:
        assert await here.ask("/jobs/1", "DELETE") == (404, {"message": "There is no job 1"})
        status, answer = await here.ask("/jobs/1", "POST")
        assert (status, answer["message"]) == (405, "/jobs/1 accepts DELETE")
        status, answer = await here.ask("/jobs", "DELETE")
        assert (status, answer["message"]) == (405, "/jobs accepts GET, HEAD")

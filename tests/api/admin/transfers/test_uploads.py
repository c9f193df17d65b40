"""Uploads over the admin port: a table is whole, or is not usable."""

from __future__ import annotations

import asyncio
import gzip
from http import HTTPStatus
from os import listdir
from pathlib import Path
from typing import Any

import pytest

from dynactor.actors.transfers import import_rows
from dynactor.actors.transfers import uploads as transfers_uploads
from dynactor.actors.transfers.decoded_files import DecodingHere
from dynactor.actors.transfers.table_imports import TableImports
from dynactor.api.clients.admin_client import AdminRequestFailed
from dynactor.api.clients.client import RequestFailed
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.storage import key_layout
from dynactor.storage.catalog import TableRecord
from tests.support.databases.transferred import KEYS, item, lines
from tests.support.databases.uploaded import Uploading, uploading
from tests.support.servers.admin import ask
from tests.support.stores.stepped_store import SteppedStore, commits_that_put, turns
from tests.support.stores.store import kept_store, memory_store

CREATION: dict[str, Any] = {"TableName": "music", **KEYS}
GZIP = "application/gzip"


def piece(*numbers: int) -> bytes:
    return gzip.compress(lines(*map(item, numbers)))


async def requested(here: Uploading, path: str, method: str, body: Any = None, **more: Any) -> int:
    """The status of a request to the admin port."""
    answer = await asyncio.to_thread(ask, here.port, path, method, body, **more)
    return answer.status


async def whole(here: Uploading, upload_id: str) -> list[dict[str, Any]]:
    """The items of the table, when it is complete."""
    await here.door.wait_imported(upload_id, lambda _: None)
    return await here.endpoint.items("music")


async def emptied(uploads: Path) -> None:
    """Wait until all pieces are deleted, which a thread does behind the table's last change."""
    while await asyncio.to_thread(listdir, uploads):
        await asyncio.sleep(0)


async def test_a_table_is_usable_when_all_its_pieces_are_imported():
    async with uploading() as here:
        begun = await here.door.begin(CREATION)
        assert (begun.table, begun.status, begun.pieces) == ("music", "IN_PROGRESS", 0)
        await here.door.send(begun.id, 1, piece(*range(30, 40)))
        await here.door.send(begun.id, 0, piece(*range(35)))
        assert await here.status("music") == "CREATING"
        with pytest.raises(RequestFailed, match="ResourceNotFoundException"):
            await here.endpoint.items("music")
        (shown,) = (await here.endpoint.call("ListImports", {}))["ImportSummaryList"]
        assert (shown["ImportStatus"], "S3BucketSource" in shown) == ("IN_PROGRESS", False)
        await here.door.end(begun.id, 2)
        assert await whole(here, begun.id) == sorted(map(item, range(40)), key=repr)
        ended = await here.door.find(begun.id)
        assert ended is not None
        assert (ended.processed, ended.imported, ended.duplicates) == (45, 40, 5)
        assert {fault.code for fault in await here.door.faults(begun.id)} == {"DuplicateKey"}
        with pytest.raises(TransferFailed, match="has ended"):
            await here.door.send(begun.id, 2, piece(50))


async def test_one_other_process_decodes_all_pieces_of_a_compressed_upload(
    monkeypatch: pytest.MonkeyPatch,
):
    begun_at: list[int] = []

    class Process(DecodingHere):
        """Stands for the process."""

        def __init__(self, record: TableRecord, request: dict[str, Any], _stopped: object) -> None:
            super().__init__(record, request)
            begun_at.append(len(sent))

    pieces = [piece(0, 1), piece(2, 3), piece(4, 5)]
    monkeypatch.setattr(import_rows, "DecodingProcess", Process)
    sent: list[bytes] = []
    async with uploading() as here:
        imports = here.endpoint.database.part(TableImports)
        begun = await here.door.begin(CREATION)
        for number, content in enumerate(pieces):
            sent.append(content)
            await here.door.send(begun.id, number, content)
            while number == 0 and not imports.imports[0].counts.imported_items:
                await asyncio.sleep(0)
        await here.door.end(begun.id, 3)
        assert await whole(here, begun.id) == sorted(map(item, range(6)), key=repr)
    assert begun_at == [1]


async def test_a_broken_connection_leaves_no_piece():
    async with uploading() as here:
        begun = await here.door.begin(CREATION)
        await here.door.send(begun.id, 0, piece(0))
        content = piece(*range(1, 100))
        _, writer = await asyncio.open_connection("127.0.0.1", here.port)
        head = (
            f"PUT /uploads/{begun.id}/1 HTTP/1.1\r\nHost: localhost\r\nX-Dynactor-Admin: 1\r\n"
            f"Content-Type: {GZIP}\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        writer.write(head.encode() + content[: len(content) // 2])
        await writer.drain()
        upload = here.endpoint.database.part(TableImports).uploads.find(begun.id)
        assert upload is not None
        while not upload.receiving:
            await asyncio.sleep(0)
        with pytest.raises(AdminRequestFailed, match="has 1 pieces, not 2"):
            await here.door.end(begun.id, 2)
        writer.close()
        await writer.wait_closed()
        while upload.receiving:
            await asyncio.sleep(0)
        found = await here.door.find(begun.id)
        assert found is not None
        assert (found.pieces, await here.status("music")) == (1, "CREATING")
        await here.door.send(begun.id, 1, content)
        await here.door.end(begun.id, 2)
        assert len(await whole(here, begun.id)) == 100


async def test_an_upload_continues_after_a_restart(tmp_path: Path):
    uploads = tmp_path / "uploads"
    async with kept_store(tmp_path / "data") as store, uploading(store, uploads) as here:
        begun = await here.door.begin(CREATION)
        await here.door.send(begun.id, 0, piece(0, 1))
    (uploads / "left behind").mkdir()
    async with kept_store(tmp_path / "data") as store, uploading(store, uploads) as here:
        assert {each.name for each in uploads.iterdir()} == {begun.id}
        found = await here.door.find_upload("music")
        assert found is not None
        assert (found.id, found.pieces, found.ended) == (begun.id, 1, False)
        assert await here.status("music") == "CREATING"
        await here.door.send(begun.id, 1, piece(2))
        await here.door.end(begun.id, 2)
        assert await whole(here, begun.id) == sorted(map(item, range(3)), key=repr)
        assert await here.door.find_upload("music") is None
        await emptied(uploads)


async def test_an_upload_ends_with_its_table(tmp_path: Path):
    uploads = tmp_path / "uploads"
    async with uploading(directory=uploads) as here:
        begun = await here.door.begin(CREATION)
        await here.door.send(begun.id, 0, piece(0))
        await here.endpoint.call("DeleteTable", {"TableName": "music"})
        with pytest.raises(TransferFailed, match="its table was deleted"):
            await here.door.send(begun.id, 1, piece(1))
        await emptied(uploads)


async def test_a_damaged_piece_ends_the_import_without_a_table():
    async with uploading() as here:
        begun = await here.door.begin(CREATION)
        await here.door.send(begun.id, 0, piece(*range(9))[:-9])
        await here.door.end(begun.id, 1)
        with pytest.raises(TransferFailed, match="000000: the gzip data is truncated"):
            await here.door.wait_imported(begun.id, lambda _: None)
        while (await here.endpoint.call("ListTables", {}))["TableNames"]:
            await asyncio.sleep(0)


async def test_an_upload_whose_import_has_failed_ends_without_an_error():
    async with uploading() as here:
        begun = await here.door.begin(CREATION)
        await here.door.send(begun.id, 0, piece(*range(9))[:-9])
        with pytest.raises(TransferFailed, match="was not imported"):
            await here.door.wait_imported(begun.id, lambda _: None)
        path = f"/uploads/{begun.id}/end"
        assert await requested(here, path, "POST", {"pieces": 1}) == HTTPStatus.CONFLICT
        await here.door.end(begun.id, 1)


async def test_a_table_that_is_deleted_while_its_import_fails_leaves_a_canceled_import():
    async with memory_store() as inner:
        store = SteppedStore(inner)
        async with uploading(store) as here:
            begun = await here.door.begin(CREATION)
            # The actor is busy when the deletion and the failure come, one after the other.
            creation = store.gate_before(commits_that_put(key_layout.table_record("other")))
            other = {**CREATION, "TableName": "other"}
            creating = asyncio.create_task(here.endpoint.call("CreateTable", other))
            await creation.reached()
            deleting = asyncio.create_task(
                here.endpoint.call("DeleteTable", {"TableName": "music"})
            )
            await turns()
            await here.door.send(begun.id, 0, piece(*range(9))[:-9])
            imports = here.endpoint.database.part(TableImports)
            (rows,) = imports._rows.values()
            while rows.failure is None:
                await asyncio.sleep(0)
            creation.open()
            await asyncio.gather(creating, deleting)
            (shown,) = (await here.endpoint.call("ListImports", {}))["ImportSummaryList"]
            assert shown["ImportStatus"] == "CANCELLED"


async def test_lost_pieces_end_the_import_without_a_table(tmp_path: Path):
    async with kept_store(tmp_path / "data") as store, uploading(store, tmp_path / "u") as here:
        begun = await here.door.begin(CREATION)
    async with kept_store(tmp_path / "data") as store, uploading(store, tmp_path / "v") as here:
        with pytest.raises(TransferFailed, match="do not exist any more"):
            await here.door.wait_imported(begun.id, lambda _: None)


@pytest.mark.parametrize(
    ("member", "status"),
    [
        ({"TableName": "m"}, HTTPStatus.BAD_REQUEST),
        ({"TableName": "taken"}, HTTPStatus.CONFLICT),
        ({"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}, 400),
        ({"VectorIndexes": []}, HTTPStatus.CREATED),
        ({"KeySchema": []}, HTTPStatus.BAD_REQUEST),
        ({"Unknown": 1}, HTTPStatus.CREATED),
    ],
)
async def test_a_table_that_cannot_be_created_is_refused(member: dict[str, Any], status: int):
    async with uploading() as here:
        await here.endpoint.call("CreateTable", {**CREATION, "TableName": "taken"})
        body = {"table": {**CREATION, **member}}
        assert await requested(here, "/uploads", "POST", body) == status
        tables = (await here.endpoint.call("ListTables", {}))["TableNames"]
        assert tables == (["music", "taken"] if status == HTTPStatus.CREATED else ["taken"])


async def test_a_directory_that_cannot_be_used_refuses_the_upload(tmp_path: Path):
    (tmp_path / "uploads").write_text("a file")
    async with uploading(directory=tmp_path / "uploads") as here:
        assert await requested(here, "/uploads", "POST", {"table": CREATION}) == 500
        assert (await here.endpoint.call("ListTables", {}))["TableNames"] == []


async def test_a_refused_table_leaves_no_files(tmp_path: Path):
    uploads = tmp_path / "uploads"
    async with uploading(directory=uploads) as here:
        await here.endpoint.call("CreateTable", CREATION)
        with pytest.raises(AdminRequestFailed, match="music"):
            await here.door.begin(CREATION)
        assert list(uploads.iterdir()) == []


async def test_a_full_disk_refuses_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with uploading(directory=tmp_path / "uploads") as here:
        begun = await here.door.begin(CREATION)
        monkeypatch.setattr(transfers_uploads, "_FREE_BYTES", 1 << 60)
        monkeypatch.setattr(transfers_uploads, "_FREE_SHARE", 1)
        with pytest.raises(TransferFailed, match="refuses piece 0: The disk has only"):
            await here.door.send(begun.id, 0, piece(0))
        monkeypatch.undo()
        await here.door.send(begun.id, 0, piece(0))
        await here.door.end(begun.id, 1)
        assert await whole(here, begun.id) == [item(0)]


async def test_malformed_requests_are_refused():
    async with uploading() as here:
        begun = await here.door.begin(CREATION)
        path = f"/uploads/{begun.id}"
        for place, method, body, content_type, status in (
            ("/uploads", "POST", "{", "application/json", 400),
            ("/uploads", "POST", "{}", "text/plain", 415),
            ("/uploads", "DELETE", None, None, 405),
            ("/uploads/unknown", "GET", None, None, 404),
            (path, "POST", "{}", "application/json", 405),
            (f"{path}/0", "GET", None, None, 405),
            (f"{path}/0", "PUT", "x", "application/json", 415),
            (f"{path}/x", "PUT", "x", GZIP, 400),
            (f"{path}/1000000", "PUT", "x", GZIP, 400),
            (f"{path}/../0", "PUT", "x", GZIP, 400),
            (f"{path}/end", "POST", "{}", "application/json", 400),
            (f"{path}/end", "POST", '{"pieces": 1}', "application/json", 409),
        ):
            found = await requested(here, place, method, body, content_type=content_type)
            assert found == status, (place, method)

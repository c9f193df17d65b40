"""An import into a new table goes through the admin port of a server of dynactor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynactor.api.commands.tables import table_pieces
from dynactor.api.commands.tables.anonymizer import AnonymizeOptions
from dynactor.api.commands.tables.export_command import ExportOptions, export_table
from dynactor.api.commands.tables.import_command import (
    DONE,
    SOME_REFUSED,
    ImportCommand,
    ImportOptions,
)
from dynactor.api.commands.tables.terminal_progress import TerminalProgress
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from tests.support.clients.database_endpoint import no_pause
from tests.support.databases.transferred import KEYS, item
from tests.support.databases.uploaded import Uploading, uploading

CREATION: dict[str, Any] = {"TableName": "music", **KEYS}
BY_NUMBER = {
    "IndexName": "by_number",
    "KeySchema": CREATION["KeySchema"],
    "Projection": {"ProjectionType": "ALL"},
}


def write(tmp_path: Path, text: str, **members: Any) -> Path:
    """A folder with a table and JSON lines."""
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    (folder / "table.json").write_bytes(msgspec.json.encode({**CREATION, **members}))
    (folder / "items.json").write_text(text)
    return folder


def lines(*numbers: int) -> str:
    return "".join(msgspec.json.encode(item(number)).decode() + "\n" for number in numbers)


async def import_(here: Uploading, folder: Path, **options: Any) -> int:
    chosen = ImportOptions(**{"create": True, "state": folder.parent / "state.json", **options})
    command = ImportCommand(here.endpoint, chosen, TerminalProgress(), no_pause, here.door)
    return await command.run([folder])


async def imports(here: Uploading) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await here.endpoint.call("ListImports", {}))["ImportSummaryList"]
    return found


async def test_the_files_of_an_export_are_uploaded_as_they_are(tmp_path: Path):
    expiry = {"AttributeName": "expires", "Enabled": True}
    async with uploading() as source, uploading() as here:
        await source.endpoint.call("CreateTable", CREATION)
        for number in range(30):
            request = {"TableName": "music", "Item": item(number)}
            await source.endpoint.call("PutItem", request)
        request = {"TableName": "music", "TimeToLiveSpecification": expiry}
        await source.endpoint.call("UpdateTimeToLive", request)
        folder = await export_table(
            source.endpoint,
            "music",
            tmp_path / "out",
            ExportOptions(segments=2),
            TerminalProgress(),
            pause=no_pause,
        )
        assert await import_(here, folder) == DONE
        assert await here.endpoint.items("music") == await source.endpoint.items("music")
        assert [each["ImportStatus"] for each in await imports(here)] == ["COMPLETED"]
        assert "BatchWriteItem" not in here.endpoint.calls
        answer = await here.endpoint.call("DescribeTimeToLive", {"TableName": "music"})
        assert answer["TimeToLiveDescription"]["AttributeName"] == "expires"
        assert not (tmp_path / "state.json").exists()


async def test_refused_and_replaced_items_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = write(tmp_path, lines(1, 2) + "no JSON\n" + '{"pk": {"S": "x"}}\n' + lines(1))
    async with uploading() as here:
        assert await import_(here, folder) == SOME_REFUSED
        assert await here.endpoint.items("music") == sorted([item(1), item(2)], key=repr)
    output = capsys.readouterr()
    places = [line.split(": ")[0] for line in output.out.splitlines() if line.startswith("/")]
    assert places == [f"{folder / 'items.json'}:{number}" for number in (3, 4)]
    assert "music: 2 items written, 2 refused, 1 replaced" in output.err


async def test_an_item_that_anonymization_makes_too_large_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    texts = {"L": [{"S": "short"}] * 20_000}
    too_large = msgspec.json.encode(item(2) | {"texts": texts}).decode()
    folder = write(tmp_path, lines(1) + too_large + "\n" + lines(3))
    async with uploading() as here:
        privacy = AnonymizeOptions(anonymize=("texts[*]=hash",), seed="seed")
        assert await import_(here, folder, privacy=privacy) == SOME_REFUSED
        assert await here.endpoint.items("music") == sorted([item(1), item(3)], key=repr)
    (refusal,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("/")]
    assert refusal.startswith(f"{folder / 'items.json'}:2: ValidationException: Item size has")


async def test_an_interrupted_upload_is_resumed_without_the_stored_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(table_pieces, "_PIECE_BYTES", 1)
    folder = write(tmp_path, lines(*range(4)))
    async with uploading() as here:
        sent: list[int] = []
        send = here.door.send

        async def send_two(upload_id: str, number: int, piece: bytes | Path) -> None:
            if len(sent) == 2:
                raise TransferFailed("interrupted")
            sent.append(number)
            await send(upload_id, number, piece)

        monkeypatch.setattr(here.door, "send", send_two)
        with pytest.raises(TransferFailed, match="interrupted"):
            await import_(here, folder)
        assert await here.status("music") == "CREATING"
        with pytest.raises(TransferFailed, match="continue it with --resume, or delete the table"):
            await import_(here, folder)
        with pytest.raises(TransferFailed, match="Another import fills the table music"):
            await import_(here, folder, resume=True, state=tmp_path / "other.json")
        sent.remove(0)
        with pytest.raises(TransferFailed, match="interrupted"):
            await import_(here, folder, resume=True)
        assert sent == [1, 2]
        sent.clear()
        assert await import_(here, folder, resume=True) == DONE
        assert sent == [3]
        assert len(await here.endpoint.items("music")) == 4


async def test_an_upload_that_has_ended_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    folder = write(tmp_path, lines(*range(4)))
    async with uploading() as here:
        end = here.door.end

        async def lose(*_: object) -> None:
            raise TransferFailed("interrupted")

        monkeypatch.setattr(here.door, "end", lose)
        with pytest.raises(TransferFailed, match="interrupted"):
            await import_(here, folder)
        await here.endpoint.call("DeleteTable", {"TableName": "music"})
        monkeypatch.setattr(here.door, "end", end)
        assert await import_(here, folder, resume=True) == DONE
        assert "music: the earlier upload has ended without a table" in capsys.readouterr().err
        # The upload is complete, so nothing is left to resume.
        assert await import_(here, folder, resume=True) == DONE
        assert len(await here.endpoint.items("music")) == 4


@pytest.mark.parametrize(
    "members",
    [
        {"LocalSecondaryIndexes": [BY_NUMBER]},
        {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}},
    ],
)
async def test_a_table_that_needs_its_partitions_is_written(
    tmp_path: Path, members: dict[str, Any]
):
    folder = write(tmp_path, lines(*range(4)), **members)
    async with uploading() as here:
        assert await import_(here, folder) == DONE
        assert len(await here.endpoint.items("music")) == 4
        assert (await imports(here), "BatchWriteItem" in here.endpoint.calls) == ([], True)


async def test_an_existing_table_is_written(tmp_path: Path):
    folder = write(tmp_path, lines(*range(4)))
    async with uploading() as here:
        await here.endpoint.call("CreateTable", CREATION)
        assert await import_(here, folder) == DONE
        assert (await imports(here), "BatchWriteItem" in here.endpoint.calls) == ([], True)


async def test_uploaded_items_are_anonymized(tmp_path: Path):
    folder = write(tmp_path, lines(*range(4)))
    async with uploading() as here, uploading() as other:
        privacy = AnonymizeOptions(anonymize=["text=hash"], seed="seed")
        assert await import_(here, folder, privacy=privacy) == DONE
        await other.endpoint.call("CreateTable", CREATION)
        assert await import_(other, folder, privacy=privacy) == DONE
        found = await here.endpoint.items("music")
        assert found == await other.endpoint.items("music")
        assert found != sorted(map(item, range(4)), key=repr)
        assert (len(await imports(here)), await imports(other)) == (1, [])

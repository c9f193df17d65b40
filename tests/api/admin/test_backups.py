"""Backups of a running server: the admin port, the command, and a server on a backup."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pytest

from tests.api.test_command_line import assert_gives_up
from tests.support.clients.clients import WireClient
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server, run_command, running_server
from tests.support.tables.tables import (
    definition,
    global_index,
    local_index,
    wait_until_indexes_active,
)

_WRITERS = 4
_ITEMS_OF_EACH = 40
_DEADLINE_SECONDS = 60


class Served(NamedTuple):
    """A server with a backup directory."""

    server: Server
    port: int
    backups: Path

    def command(self, *arguments: str) -> Any:
        endpoint = f"http://127.0.0.1:{self.port}"
        return run_command("backup", "--admin-endpoint", endpoint, *arguments)


@pytest.fixture(params=["disk", "memory"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    backups = tmp_path / "backups"
    data = tmp_path / "data" if request.param == "disk" else None
    options = ("--admin-port", "0", "--backup-dir", str(backups))
    with running_server(*options, data_dir=data) as server:
        yield Served(server, admin_port(server), backups)


def put_and_get(endpoint: str, name: str) -> dict[str, Any]:
    """Put another item, and get the first one."""
    with closing(WireClient(endpoint)) as call:
        call("PutItem", {"TableName": name, "Item": {"pk": {"S": "later"}}})
        found: dict[str, Any] = call("GetItem", {"TableName": name, "Key": {"pk": {"S": "first"}}})
        return found["Item"]


def test_a_server_on_a_backup_has_all_data_and_accepts_writes(served: Served):
    request = definition("pk:S")
    name = request["TableName"]
    item = {"pk": {"S": "first"}, "note": {"S": "kept"}}
    with closing(WireClient(served.server.endpoint)) as call:
        call("CreateTable", request)
        call("PutItem", {"TableName": name, "Item": item})
        done = served.command("--name", "before")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{served.backups / 'before'}\n"
        call("DeleteTable", {"TableName": name})
    copy = shutil.copytree(served.backups / "before", served.backups / "copy")
    with running_server(data_dir=copy) as restored:
        assert put_and_get(restored.endpoint, name) == item


def test_a_server_starts_on_a_backup_only_with_the_option(served: Served):
    assert served.command("--name", "before").returncode == 0
    backup = served.backups / "before"
    files = sorted(path.name for path in backup.iterdir())
    refused = run_command("serve", "--port", "0", "--data-dir", str(backup))
    assert_gives_up(refused, f"cp -r {backup} COPY", "--serve-backup")
    # A renamed backup still counts as a backup.
    renamed = backup.rename(served.backups / "renamed")
    refused = run_command("serve", "--port", "0", "--data-dir", str(renamed))
    assert_gives_up(refused, "is a backup")
    assert sorted(path.name for path in renamed.iterdir()) == files
    with running_server("--serve-backup", data_dir=renamed) as server:
        assert server.stop() == 0
    # After a server has run on the backup, the backup is an ordinary data directory.
    with running_server(data_dir=renamed) as server:
        assert server.stop() == 0


def test_a_backup_without_a_name_is_named_after_the_time(served: Served):
    made = ask(served.port, "/backups", "POST", {})
    assert made.status == 201
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z", made.json["name"])
    assert made.json["directory"] == str(served.backups / made.json["name"])
    assert Path(made.json["directory"]).is_dir()


def test_a_refused_backup_has_a_reason(served: Served):
    assert ask(served.port, "/backups", "POST", {"name": "one"}).status == 201
    for body, status, words in (
        ({"name": "one"}, 409, "There is a backup of that name"),
        ({"name": "../two"}, 400, "is not a valid name of a backup"),
        ({"name": 1}, 400, "Expected `str | null`"),
        ({"names": "two"}, 400, "unknown field `names`"),
        ("", 400, "Input data was truncated"),
    ):
        refused = ask(served.port, "/backups", "POST", body)
        assert (refused.status, words in refused.json["message"]) == (status, True), refused.body
    assert ask(served.port, "/backups", "POST", "{}", content_type="text/plain").status == 415
    only_post = ask(served.port, "/backups")
    assert (only_post.status, only_post.headers["Allow"]) == (405, "POST")
    assert [each.name for each in served.backups.glob("[!.]*")] == ["one"]
    assert_gives_up(served.command("--name", "one"), "There is a backup of that name")


def test_a_server_without_a_backup_directory_reports_the_option(default_server: Server):
    port = admin_port(default_server)
    assert "--backup-dir" in ask(port, "/backups", "POST", {}).json["message"]
    assert_gives_up(
        run_command("backup", "--admin-endpoint", f"http://127.0.0.1:{port}"), "--backup-dir"
    )
    assert_gives_up(
        run_command("backup", "--admin-endpoint", default_server.endpoint), "is not dynactor"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--backup-dir", "/elsewhere", "--no-admin"), "needs the admin port"),
        (
            ("--admin-port", "0", "--data-dir", "/data", "--backup-dir", "/data/backups"),
            "is in the data directory /data",
        ),
    ],
)
def test_an_unusable_backup_directory_is_refused_at_start(options: tuple[str, ...], words: str):
    assert_gives_up(run_command("serve", "--port", "0", *options), words)


def test_a_backup_directory_linked_into_the_data_directory_is_refused(tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    data = ("--admin-port", "0", "--data-dir", str(tmp_path / "data"))
    for way in (tmp_path / "link" / "backups", tmp_path / "data" / ".." / "data" / "backups"):
        refused = run_command("serve", "--port", "0", *data, "--backup-dir", str(way))
        assert_gives_up(refused, "is in the data directory")


class _Writer(threading.Thread):
    """A thread that writes its items repeatedly, each time with the next number."""

    def __init__(self, endpoint: str, table: str, number: int, ended: threading.Event) -> None:
        super().__init__()
        self._call = WireClient(endpoint)
        self._table = table
        self._number = number
        self._ended = ended
        # For each item, the last acknowledged number and the last requested number.
        self.answered = [0] * _ITEMS_OF_EACH
        self.asked = [0] * _ITEMS_OF_EACH

    def run(self) -> None:
        round_number = 0
        with closing(self._call):
            while not self._ended.is_set():
                round_number += 1
                for place in range(_ITEMS_OF_EACH):
                    self.asked[place] = round_number
                    number = {"N": str(round_number)}
                    key = {"pk": {"S": f"{self._number}"}, "sk": {"N": str(place)}}
                    item = {**key, "local": number, "global": {"S": f"g{round_number % 3}"}}
                    self._call("PutItem", {"TableName": self._table, "Item": item})
                    self.answered[place] = round_number


def test_a_backup_during_writes_has_all_acknowledged_writes_and_matching_indexes(
    tmp_path: Path,
):
    request = definition(
        *("pk:S", "sk:N", "local:N", "global:S"),
        indexes=(local_index("ByLocal", "pk", "local"),),
        GlobalSecondaryIndexes=[global_index("ByGlobal", "global", "sk")],
    )
    name = request["TableName"]
    options = ("--admin-port", "0", "--backup-dir", str(tmp_path / "backups"))
    bounds = []
    with running_server(*options, data_dir=tmp_path / "data") as server:
        port = admin_port(server)
        with closing(WireClient(server.endpoint)) as call:
            call("CreateTable", request)
            wait_until_indexes_active(call, name)
        ended = threading.Event()
        writers = [_Writer(server.endpoint, name, number, ended) for number in range(_WRITERS)]
        for writer in writers:
            writer.start()
        try:
            for number in range(3):
                while not all(writer.answered[-1] > number for writer in writers):
                    assert all(writer.is_alive() for writer in writers)
                    ended.wait(0.001)
                before = [list(writer.answered) for writer in writers]
                made = ask(port, "/backups", "POST", {"name": f"b{number}"})
                assert made.status == 201, made.body
                bounds.append((before, [list(writer.asked) for writer in writers]))
        finally:
            ended.set()
            for writer in writers:
                writer.join()
    for number, (before, after) in enumerate(bounds):
        with (
            running_server(
                "--serve-backup", data_dir=tmp_path / "backups" / f"b{number}"
            ) as restored,
            closing(WireClient(restored.endpoint)) as call,
        ):
            items = call("Scan", {"TableName": name})["Items"]
            assert len(items) == _WRITERS * _ITEMS_OF_EACH
            for item in items:
                writer_number, place = int(item["pk"]["S"]), int(item["sk"]["N"])
                found = int(item["local"]["N"])
                assert before[writer_number][place] <= found <= after[writer_number][place]
            assert sorted_items(call, name, "ByLocal") == sorted(items, key=repr)
            # The global index continues from its checkpoint and catches up.
            deadline = monotonic() + _DEADLINE_SECONDS
            while sorted_items(call, name, "ByGlobal") != sorted(items, key=repr):
                assert monotonic() < deadline


def sorted_items(call: WireClient, table: str, index: str) -> list[Any]:
    return sorted(call("Scan", {"TableName": table, "IndexName": index})["Items"], key=repr)

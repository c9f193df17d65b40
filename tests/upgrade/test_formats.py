"""A directory of an older format is upgraded; one of a newer format is refused unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynactor.storage.data_directory import FORMAT_VERSION
from tests.support.databases.table_backups import wait_until_available
from tests.support.servers.admin import admin_port
from tests.support.servers.server import ServerDidNotStart, run_command, running_server
from tests.support.servers.upgraded import Written, scanned, upgraded
from tests.support.tables.tables import wait_until_active

A_YEAR = "31536000"


def test_the_first_start_raises_the_format_and_logs_the_upgrade(written: Written, directory: Path):
    assert (directory / "format").read_text() == "dynactor data, format 1\n"
    with upgraded(written, directory) as server:
        assert (directory / "format").read_text() == f"dynactor data, format {FORMAT_VERSION}\n"
        assert "format_raised" in server.server.log
        assert server.server.stop() == 0
    with upgraded(written, directory) as server:
        assert "format_raised" not in server.server.log


def test_a_backup_of_an_upgraded_directory_has_all_data(written: Written, directory: Path):
    copies = directory.with_name("copies")
    options = ("--ttl-delay-seconds", A_YEAR)
    with upgraded(written, directory, *options, "--backup-dir", str(copies)) as server:
        endpoint = f"http://127.0.0.1:{admin_port(server.server)}"
        done = run_command("backup", "--admin-endpoint", endpoint, "--name", "whole")
        assert done.returncode == 0, done.stderr
    with upgraded(written, copies / "whole", *options, "--serve-backup") as server:
        for name, items in written.items.items():
            wait_until_active(server.wire, name)
            assert scanned(server.wire, name) == items
        for backup in written.backups.values():
            wait_until_available(server.wire, backup["BackupArn"])


def test_a_newer_format_is_refused_with_a_message_and_nothing_is_changed(directory: Path):
    newer = FORMAT_VERSION + 1
    (directory / "format").write_text(f"dynactor data, format {newer}\n")
    before = files(directory)
    with (
        pytest.raises(ServerDidNotStart, match=f"has format {newer}, this dynactor knows formats"),
        running_server(data_dir=directory),
    ):
        pass
    assert files(directory) == before


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }

"""``dynactor jobs`` lists and cancels the jobs of a server."""

from __future__ import annotations

from tests.api.test_command_line import assert_gives_up
from tests.support.databases.transferred import KEYS
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import run_command, running_server


def test_a_job_is_listed_and_canceled():
    with running_server("--admin-port", "0") as server:
        port = admin_port(server)
        upload = ask(port, "/uploads", "POST", {"table": {"TableName": "music", **KEYS}}).json["id"]
        admin = ("--admin-endpoint", f"http://127.0.0.1:{port}")
        listed = run_command("jobs", "list", *admin)
        assert listed.stdout.startswith(
            f"{upload} import of music: IN_PROGRESS, 0 items, since 20"
        ), listed.stderr
        canceled = run_command("jobs", "cancel", upload, *admin)
        assert canceled.stdout.startswith(f"{upload} import of music: CANCELLED, 0 items, since 20")
        assert canceled.stdout.endswith(", An operator canceled the import\n")
        assert run_command("jobs", "list", *admin).stdout == ""
        assert run_command("jobs", "list", "--all", *admin).stdout == canceled.stdout
        assert_gives_up(run_command("jobs", "cancel", "1", *admin), "There is no job 1")
        assert_gives_up(run_command("jobs", "cancel", "é ?1", *admin), "There is no job é ?1")

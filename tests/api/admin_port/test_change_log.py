"""Changes over the admin port are logged: accepted and refused ones, and no reads."""

from __future__ import annotations

import json

from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import running_server


def test_changes_are_logged():
    with running_server("--admin-port", "0", "--log-format", "json") as server:
        port = admin_port(server)
        assert ask(port, "/metrics").status == 200
        assert ask(port, "/reset", "POST", {}).status == 200
        assert ask(port, "/reset", "POST", {}, headers={"X-Dynactor-Admin": "0"}).status == 403
        lines = [json.loads(line) for line in server.log.splitlines() if "change_requested" in line]
    assert [
        (line["method"], line["path"], line["http_status"], line["caller"], line["address"])
        for line in lines
    ] == [
        ("POST", "/reset", 200, "same machine", "127.0.0.1"),
        ("POST", "/reset", 403, "same machine", "127.0.0.1"),
    ]
    assert all(line["timestamp"] for line in lines)

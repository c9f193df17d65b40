"""A backup that was taken before a power cut is complete."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.support.clients.clients import WireClient
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import running_server
from tests.support.stores.power_loss import PowerLoss
from tests.support.tables.tables import definition

_ITEMS = 100


def test_an_acknowledged_backup_survives_a_power_cut(tmp_path: Path):
    disk = tmp_path / "disk"
    power = PowerLoss(tmp_path / "power", disk)
    options = ("--admin-port", "0", "--backup-dir", str(disk / "backups"))
    request = definition("pk:N")
    name = request["TableName"]
    with (
        running_server(*options, data_dir=disk / "data", environment=power.environment()) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        call("CreateTable", request)
        for number in range(_ITEMS):
            call("PutItem", {"TableName": name, "Item": {"pk": {"N": str(number)}}})
        made = ask(admin_port(server), "/backups", "POST", {"name": "made"})
        assert made.status == 201, made.body
        server.kill()
    power.cut()
    for directory in (disk / "backups" / "made", disk / "data"):
        with (
            running_server("--serve-backup", data_dir=directory) as restored,
            closing(WireClient(restored.endpoint)) as call,
        ):
            assert call("Scan", {"TableName": name, "Select": "COUNT"})["Count"] == _ITEMS

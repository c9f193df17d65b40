"""After kill -9 during the reclaim of a deleted table's disk space, the next start continues it."""

from __future__ import annotations

import base64
import os
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic

from tests.support.clients.clients import WireClient
from tests.support.servers.server import running_server
from tests.support.stores.power_loss import PowerLoss
from tests.support.tables.tables import definition

_KILLS = 2
# With syncs this slow, the reclaim is still running when the server has started.
_DELAY_MILLISECONDS = 50
_ITEMS = 50
_ITEM_BYTES = 390 * 1024
_LARGE_BYTES = 16 * 1024 * 1024
# The upper bound of the data after the space is reclaimed.
_SMALL_BYTES = 1024 * 1024
_DEADLINE_SECONDS = 60


def test_the_disk_space_of_a_deleted_table_is_reclaimed_after_kill_9(tmp_path: Path):
    data = tmp_path / "data"
    power = PowerLoss(tmp_path / "power", data)
    request = definition("pk:N")
    name = request["TableName"]
    with (
        running_server(data_dir=data) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        call("CreateTable", request)
        for number in range(_ITEMS):
            blob = base64.b64encode(os.urandom(_ITEM_BYTES)).decode()
            item = {"pk": {"N": f"{number}"}, "blob": {"B": blob}}
            call("PutItem", {"TableName": name, "Item": item})
        # Stop the server, so the data is in table files: data only in the log needs no reclaim.
        assert server.stop() == 0, server.log
    assert tables_bytes(data) > _LARGE_BYTES

    with (
        running_server(data_dir=data, environment=power.environment()) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        call("DeleteTable", {"TableName": name})
        power.hold_syncs()
        power.wait_until_held()
        server.kill()
    assert tables_bytes(data) > _LARGE_BYTES

    power.release_syncs()
    power.delay_syncs(_DELAY_MILLISECONDS)
    for _ in range(_KILLS):
        with running_server(data_dir=data, environment=power.environment()) as server:
            server.kill()
    with running_server(data_dir=data) as server:
        deadline = monotonic() + _DEADLINE_SECONDS
        while tables_bytes(data) > _SMALL_BYTES:
            assert monotonic() < deadline, server.log
        assert server.stop() == 0, server.log


def tables_bytes(data: Path) -> int:
    """The size of the engine's table files."""
    total_bytes = 0
    for path in data.rglob("*.sst"):
        # The file may be deleted after it was listed.
        with suppress(FileNotFoundError):
            total_bytes += path.stat().st_size
    return total_bytes

"""The endpoints for liveness and readiness."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

from dynactor.api.admin_port.listener import Administered, serving_admin
from dynactor.api.http.browser_access import Access
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import listen, serving
from dynactor.api.http.settings import HttpSettings
from tests.support.clients.clients import WireClient
from tests.support.databases.databases import running_database
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server, running_server
from tests.support.stores.power_loss import PowerLoss
from tests.support.stores.store import memory_store


def test_a_running_server_is_healthy_and_ready(default_server: Server) -> None:
    port = admin_port(default_server)
    assert ask(port, "/health").body == b"healthy\n"
    assert ask(port, "/ready").body == b"ready\n"
    assert ask(port, "/ready", method="POST").status == 405


async def test_a_server_is_ready_from_when_it_listens_until_it_stops() -> None:
    async with memory_store() as store, running_database(store) as database:
        protocol = Protocol(database, ())
        with listen("127.0.0.1", 0) as admin, listen("127.0.0.1", 0) as listener:
            port = admin.getsockname()[1]
            async with serving_admin(Administered(store.figures, protocol), Access(), admin):

                async def status(path: str) -> int:
                    return (await asyncio.to_thread(ask, port, path)).status

                assert await status("/ready") == 503
                async with serving(protocol, HttpSettings(region="us-east-1"), listener):
                    assert await status("/ready") == 200
                assert await status("/ready") == 503
                assert await status("/health") == 200


def test_a_server_is_not_ready_while_its_disk_is_full(tmp_path: Path) -> None:
    power = PowerLoss(tmp_path / "power", tmp_path / "data")
    with running_server(
        "--admin-port", "0", data_dir=tmp_path / "data", environment=power.environment()
    ) as server:
        port = admin_port(server)
        power.fill_disk()
        table = {
            "TableName": "Thread",
            "AttributeDefinitions": [{"AttributeName": "forum", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "forum", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        }
        with closing(WireClient(server.endpoint)) as wire:
            assert wire.send("CreateTable", table).status == 500
            answer = ask(port, "/ready")
            assert answer.status == 503
            assert answer.body == b"not ready: the store refuses writes (Full)\n"
            assert ask(port, "/health").status == 200
            power.free_disk()
            while wire.send("CreateTable", table).status != 200:
                pass
        assert ask(port, "/ready").status == 200

"""Errors of PostgreSQL that clients see have no texts of the driver or of the operating system."""

from __future__ import annotations

import asyncpg
import pytest

from dynactor.storage.postgresql.address import parse_address
from dynactor.storage.postgresql.connections import ConnectionPolicy, Connections
from dynactor.storage.postgresql.errors import translate
from dynactor.storage.store import StoreError, Unavailable
from tests.support.environment.unused_ports import unused_ports


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(104, "Connection reset by peer"),
        asyncpg.InterfaceError("cannot perform operation: another operation is in progress"),
        asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
        asyncpg.AdminShutdownError("terminating connection due to administrator command"),
    ],
)
def test_a_lost_connection_has_one_text_whatever_the_driver_says(error: Exception):
    assert str(translate(error)) == "PostgreSQL: the connection was lost"


async def test_an_unreachable_server_has_a_text_without_its_address():
    (port,) = unused_ports(1)
    address = parse_address(f"postgresql://postgres@127.0.0.1:{port}/postgres")
    with pytest.raises(Unavailable) as raised:
        await Connections(address, 1, ConnectionPolicy(is_logged=False)).open()
    assert str(raised.value) == "PostgreSQL can't be reached"


def test_a_taken_over_database_asks_nobody_to_restart_a_node():
    refusal = asyncpg.PostgresError("")
    refusal.sqlstate = "DY002"
    error: StoreError = translate(refusal)
    assert str(error) == "another server has taken over the database"

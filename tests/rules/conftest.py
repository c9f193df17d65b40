"""Shared by the rules' tests: the table Thread, and a server with small item collections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.rules.local_indexes.thread import thread_table
from tests.support.clients.clients import WireClient, boto3_client
from tests.support.servers.server import running_server
from tests.support.tables.tables import unique_name

COLLECTION_LIMIT_BYTES = 100_000


@pytest.fixture(scope="session")
def threads(wire: WireClient) -> Iterator[str]:
    """The table Thread, which tests share; each test writes to its own forum."""
    with thread_table(wire) as name:
        yield name


@pytest.fixture
def forum() -> str:
    """A forum that no other test uses."""
    return unique_name("forum")


@pytest.fixture(scope="session")
def limited_endpoint() -> Iterator[str]:
    """A separate server whose item collections may hold 100,000 bytes instead of 10 GB."""
    limit = ("--item-collection-limit-bytes", str(COLLECTION_LIMIT_BYTES))
    with running_server(*limit) as server:
        yield server.endpoint


@pytest.fixture(scope="session")
def limited_wire(limited_endpoint: str) -> Iterator[WireClient]:
    with closing(WireClient(limited_endpoint)) as wire:
        yield wire


@pytest.fixture(scope="session")
def limited_client(limited_endpoint: str) -> Iterator[Any]:
    with closing(boto3_client(limited_endpoint)) as client:
        yield client

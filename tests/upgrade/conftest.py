"""A data directory of an earlier version, for every test of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.upgraded import Upgraded, Written, unpack, upgraded, written_by_6ee0983
from tests.support.tables.tables import wait_until_indexes_active


@pytest.fixture(scope="session")
def written() -> Written:
    return written_by_6ee0983()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A copy of the directory for one test."""
    return unpack(tmp_path)


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory, written: Written) -> Iterator[Upgraded]:
    """A server on a copy, for tests that write nothing.

    The server has completed pending changes, and deletes no expired items.
    """
    directory = unpack(tmp_path_factory.mktemp("written"))
    with upgraded(written, directory, "--ttl-delay-seconds", "31536000") as server:
        for name in written.requests:
            wait_until_indexes_active(server.wire, name)
        yield server

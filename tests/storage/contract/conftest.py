"""The engines for tests of the port."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import pytest

from dynactor.storage.store import Store
from tests.support.stores.store import disk_store, memory_store, postgresql_store


class OpenStore(Protocol):
    """Opens the same store each time, unless it is in memory."""

    def __call__(self) -> AbstractAsyncContextManager[Store]: ...


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``engine_name`` on each engine, and on the fakes of its module."""
    if "engine_name" in metafunc.fixturenames:
        engines = ["disk", "memory", *getattr(metafunc.module, "FAKES", ())]
        if metafunc.config.getoption("--store") == "postgresql":
            engines.append("postgresql")
        metafunc.parametrize("engine_name", engines)


@pytest.fixture
def open_store(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    if engine_name == "disk":
        return lambda: disk_store(tmp_path)
    if engine_name == "postgresql":
        url = request.getfixturevalue("postgresql").url()
        return lambda: postgresql_store(url)
    return memory_store

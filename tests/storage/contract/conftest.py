"""Runs the tests of the storage port on each engine."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import pytest

from dynactor.storage.store import Store
from tests.support.stores.store import disk_store, postgresql_store, rocks_in_memory


class OpenStore(Protocol):
    """Opens a store. Each call opens the same data, unless the store is in memory."""

    def __call__(self) -> AbstractAsyncContextManager[Store]: ...


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the parameter ``engine_name`` on each engine and each fake of its module."""
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
    return rocks_in_memory

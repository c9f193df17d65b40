"""Splits long runs into databases of 10 rounds, because rounds get slower as a database grows."""

from __future__ import annotations

import pytest

ROUNDS_PER_DATABASE = 10


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the parameter ``database_seed`` once for every 10 of the requested rounds."""
    if "database_seed" not in metafunc.fixturenames:
        return
    total: int | None = metafunc.config.getoption("--rounds")
    if total is None:
        metafunc.parametrize(("database_seed", "rounds"), [pytest.param(1, None, id="few")])
        return
    starts = range(0, total, ROUNDS_PER_DATABASE)
    metafunc.parametrize(
        ("database_seed", "rounds"),
        [
            pytest.param(1 + start, min(ROUNDS_PER_DATABASE, total - start), id=f"from-{start}")
            for start in starts
        ],
    )

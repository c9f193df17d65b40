"""Sets the number of histories to test, and prints the summary of all histories."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.support.histories.history_figures import summary
from tests.support.histories.restarting_server import Fault, MakeServer, RestartingServer

_FEW_HISTORIES: Final = 2
_FEW_BUGS: Final = 1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test for each history, with ``seed`` from 0 on, and for each bug; few by default."""
    rounds = metafunc.config.getoption("--rounds")
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(rounds or _FEW_HISTORIES))
    for name, table in (
        ("single_item_bug", "IN_SINGLE_ITEMS"),
        ("transaction_bug", "IN_TRANSACTIONS"),
    ):
        if name in metafunc.fixturenames:
            bugs = list(getattr(metafunc.module, table))
            metafunc.parametrize(name, bugs if rounds else bugs[:_FEW_BUGS])


@pytest.fixture
def make_server(request: pytest.FixtureRequest, tmp_path: Path, seed: int) -> MakeServer:
    """Make the server of a history. A quarter of them have a fault; on PostgreSQL, half of them."""
    if request.config.getoption("--store") is None:
        kinds: tuple[Fault | None, ...] = ("power", None, None, None, "server", None, None, None)
        postgresql = None
    else:
        kinds = ("second server", None, "server", None, "postgresql", None)
        postgresql = request.getfixturevalue("postgresql")
    fault = kinds[seed % len(kinds)]
    return partial(RestartingServer, tmp_path, fault=fault, postgresql=postgresql)


@pytest.fixture
def enough(rounds: int | None) -> int:
    """The number of operations of a history."""
    return 200 if rounds is None else 2_000


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the summary of all histories."""
    lines = list(_lines(terminalreporter))
    if lines:
        terminalreporter.section("histories")
        for line in lines:
            terminalreporter.write_line(line)


def _lines(terminalreporter: pytest.TerminalReporter) -> Iterator[str]:
    kinds: dict[str, list[str]] = {}
    for report in terminalreporter.getreports("passed"):
        for kind, figures in report.user_properties:
            kinds.setdefault(kind, []).append(str(figures))
    for kind, figures in kinds.items():
        yield from summary(kind, figures)

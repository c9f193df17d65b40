"""Sets the number of histories to test, and prints the summary of all histories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.histories.history_figures import summary

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

"""How long the crash tests run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rounds",
        type=int,
        help="of kill -9 and of power loss, such as 100; a few by default. Name the folder of "
        "the crash tests on the command line: python -m pytest tests/crash --rounds 100",
    )


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int | None:
    """How many rounds were asked for; None: a few."""
    # A run of all tests reads this file too late for its options.
    given: int | None = request.config.getoption("rounds", None)
    return given

"""What the wire tests need beside their server: node, for the JavaScript SDK."""

from __future__ import annotations

import shutil

import pytest

_NODE_IS_MISSING = shutil.which("node") is None or shutil.which("npm") is None

collect_ignore = ["test_javascript.py"] if _NODE_IS_MISSING else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what could not be run here, where a reader of the result sees it."""
    if _NODE_IS_MISSING:
        terminalreporter.section("not run")
        terminalreporter.write_line(
            "tests/wire/test_javascript.py: needs node and npm, which are not on this machine"
        )

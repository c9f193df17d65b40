"""Skips the tests of the JavaScript SDK on a machine without node and npm."""

from __future__ import annotations

import shutil

import pytest

from tests.support.environment.left_out import leave_out

_NODE_IS_MISSING = shutil.which("node") is None or shutil.which("npm") is None

collect_ignore = ["test_javascript.py"] if _NODE_IS_MISSING else []


def pytest_configure(config: pytest.Config) -> None:
    if _NODE_IS_MISSING:
        leave_out(
            config,
            "tests/wire/clients/test_javascript.py: needs node and npm, which are not here",
        )

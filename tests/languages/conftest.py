"""Tests that fetch packages of other languages run only if requested by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.environment.left_out import leave_out

_TOOLS = {"test_npm.py": "npm", "test_maven.py": "Maven", "test_go.py": "Go"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out tests that fetch packages, unless requested."""
    tool = _TOOLS.get(collection_path.name)
    if tool is None:
        return None
    asked = [(config.invocation_params.dir / text.split("::")[0]).resolve() for text in config.args]
    if collection_path in asked:
        return None
    target = collection_path.stem.replace("_", "-")
    name = f"tests/languages/{collection_path.name}"
    leave_out(config, f"{name}: needs {tool}, which fetches packages; run it by make {target}")
    return True

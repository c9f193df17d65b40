"""Actors wait for events; a wait for time has its reason on the line above."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.sources import PROJECT, tree_of

DERIVED = PROJECT / "actors" / "derived"
FILES = sorted((PROJECT / "actors").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_a_sleep_has_its_reason(path):
    lines = path.read_text().splitlines()
    sleeps = [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr == "sleep"
    ]
    assert [line for line in sleeps if not lines[line - 2].strip().startswith("#")] == []


def test_only_one_file_retries_connections_to_a_broker():
    catching = {
        path.name
        for path in (DERIVED / "kafka").glob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and node.type and "Error" in ast.unparse(node.type)
    }
    # ``client_calls`` converts a cancellation into a failed delivery. ``broker_check`` asks once.
    assert catching - {"client_calls.py", "broker_check.py"} == {"kafka_sender.py"}

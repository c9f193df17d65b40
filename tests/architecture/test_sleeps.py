"""Actors wait for events; a wait for time has its reason on the line above."""

from __future__ import annotations

import ast

from tests.architecture.sources import PROJECT, text_of, tree_of

DERIVED = PROJECT / "actors" / "derived"
FILES = sorted((PROJECT / "actors").rglob("*.py"))


def test_a_sleep_has_its_reason():
    sleeps = [
        (path, node.lineno)
        for path in FILES
        if "sleep" in text_of(path)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr == "sleep"
    ]
    assert sleeps
    without = [
        (str(path.relative_to(PROJECT)), line)
        for path, line in sleeps
        if not text_of(path).splitlines()[line - 2].strip().startswith("#")
    ]
    assert without == []


def test_only_one_file_retries_connections_to_a_broker():
    catching = {
        path.name
        for path in (DERIVED / "kafka").glob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and node.type and "Error" in ast.unparse(node.type)
    }
    # ``client_calls`` converts a cancellation into a failed delivery. ``broker_check`` asks once.
    assert catching - {"client_calls.py", "broker_check.py"} == {"kafka_sender.py"}

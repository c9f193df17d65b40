"""A sink only derives values: followers and scans wait, retry, commit and keep checkpoints."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.sources import PROJECT, tree_of

FED_FROM_LOGS = {"RowSink", "MessageSink", "RoundSink"}
KINDS = FED_FROM_LOGS | {"FillSink", "SnapshotSink"}
# A loop over a given batch needs no waiting, so ``for`` is allowed.
FORBIDDEN = (ast.While, ast.AsyncFor, ast.Try, ast.Await, ast.AsyncFunctionDef, ast.AsyncWith)


def sinks(kinds: set[str] = KINDS) -> dict[str, ast.ClassDef]:
    """The sinks of the product and the tests, by the names of their classes."""
    return {
        node.name: node
        for folder in ("actors", "tests/support")
        for path in sorted((PROJECT / folder).rglob("*.py"))
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and any(base_name(base) in kinds for base in node.bases)
    }


def base_name(base: ast.expr) -> str:
    base = base.value if isinstance(base, ast.Subscript) else base
    return base.id if isinstance(base, ast.Name) else ""


def test_sinks_are_found():
    assert sinks().keys() >= {
        "BackupCopy",
        "ExpiryTimes",
        "IndexBackfill",
        "IndexChanges",
        "ItemCounts",
        "KafkaSink",
        "RestoredItems",
    }


@pytest.mark.parametrize("name", sinks())
def test_a_sink_has_no_loop_no_try_no_wait_and_no_checkpoint(name: str):
    nodes = list(ast.walk(sinks()[name]))
    assert [ast.unparse(node) for node in nodes if isinstance(node, FORBIDDEN)] == []
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert names.isdisjoint(
        {"asyncio", "anyio", "sleep", "commit", "StoredCheckpoint", "checkpoint"}
    )


@pytest.mark.parametrize("name", sinks(FED_FROM_LOGS))
def test_a_sink_declares_how_long_it_needs_the_logs(name: str):
    # Some sinks set the attribute in the constructor, because it depends on their options.
    assigned = {
        name
        for node in ast.walk(sinks()[name])
        if isinstance(node, ast.Assign)
        for target in node.targets
        if (name := stated(target)) is not None
    }
    assert "contract" in assigned


def stated(target: ast.expr) -> str | None:
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else None

"""A test does not fail because the machine is slow or busy.

A test may wait for an event without a limit of its own, or for ``HANG_SECONDS``, which only ends a
test that hangs. It asserts no upper bound of a time that it measured, unless the bound was measured
in the same run, too. A shorter limit has its reason in a comment on the line above.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.sources import PROJECT, text_of, tree_of

# Benchmarks measure times, and nothing else depends on them.
_BENCHMARKS: Final = PROJECT / "tests" / "load"
_FILES: Final = sorted(
    path for path in (PROJECT / "tests").rglob("*.py") if not path.is_relative_to(_BENCHMARKS)
)
_CLOCKS: Final = frozenset(
    ("perf_counter", "monotonic", "process_time", "thread_time", "perf_counter_ns", "monotonic_ns")
)
# On these loops time passes only when no callback is ready, or when the test says so.
_OTHER_CLOCKS: Final = re.compile("simulated_loop import|stepped_time import")
_LIMITS: Final = re.compile(r"timeout\(|fail_after|wait_for|process\.wait|monotonic|perf_counter")
_READS_CLOCK: Final = re.compile(r"perf_counter|monotonic|process_time|thread_time|time\(\)")
_LEAST_SECONDS: Final = 60


def _is_clock(node: ast.AST) -> bool:
    """Whether a node reads a clock of the machine."""
    if not isinstance(node, ast.Call):
        return False
    call = node.func
    if isinstance(call, ast.Name):
        return call.id in _CLOCKS
    if not isinstance(call, ast.Attribute):
        return False
    if call.attr == "time":
        owner = ast.unparse(call.value)
        return owner == "time" or owner.endswith(("loop", "loop()"))
    return call.attr in _CLOCKS


_HOLDERS: Final = (
    ast.Assign,
    ast.AnnAssign,
    ast.NamedExpr,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Call,
)


class _Times:
    """The names of one file that hold moments and durations, or return them."""

    def __init__(self, tree: ast.Module) -> None:
        self._moments: set[str] = set()
        self._durations: set[str] = set()
        nodes = [node for node in ast.walk(tree) if isinstance(node, _HOLDERS)]
        before = -1
        while before != len(self._moments) + len(self._durations):
            before = len(self._moments) + len(self._durations)
            for node in nodes:
                for name, value in _held(node):
                    if self.is_measured(value):
                        self._durations.add(name)
                    elif self._is_moment(value):
                        self._moments.add(name)

    def is_measured(self, node: ast.AST) -> bool:
        """Whether an expression is computed from the time that something took."""
        return any(
            (isinstance(each, ast.Name) and each.id in self._durations)
            or (
                isinstance(each, ast.BinOp)
                and isinstance(each.op, ast.Sub)
                and (self._is_moment(each.left) or self._is_moment(each.right))
            )
            for each in ast.walk(node)
        )

    def _is_moment(self, node: ast.AST) -> bool:
        return any(
            _is_clock(each) or (isinstance(each, ast.Name) and each.id in self._moments)
            for each in ast.walk(node)
        )


def _held(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Each name that gets a value here: of a variable, a list, or the function that returns it."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is not None:
            for target in targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                yield from ((ast.unparse(name), node.value) for name in names)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for each in ast.walk(node):
            if isinstance(each, ast.Return) and each.value is not None:
                yield node.name, each.value
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".append") and node.args:
        yield ast.unparse(node.func).removesuffix(".append"), node.args[0]


def _bounded(test: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Pairs of the smaller and the larger side of each comparison of an assert."""
    for node in ast.walk(test):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(operator, ast.Lt | ast.LtE):
                yield left, right
            elif isinstance(operator, ast.Gt | ast.GtE):
                yield right, left


def _time_asserts(tree: ast.Module) -> list[int]:
    """The lines that assert an upper bound, not measured itself, of a measured time."""
    times = _Times(tree)
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        for low, high in _bounded(node.test)
        if times.is_measured(low) and not times.is_measured(high)
    ]


def _constants(tree: ast.Module) -> dict[str, float]:
    """The numbers that have a name in a file."""
    return {
        ast.unparse(target): node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int | float)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }


def _short_limits(tree: ast.Module) -> list[int]:
    """The lines with a limit on the wall clock that a busy machine may miss."""
    constants = _constants(tree)

    def seconds(node: ast.expr | None) -> float | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        return constants.get(node.id) if isinstance(node, ast.Name) else None

    found = []
    for node in ast.walk(tree):
        limit: ast.expr | None = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_clock(node.left):
            limit = node.right
        elif isinstance(node, ast.Call):
            limit = _limit_of(node)
        given = seconds(limit)
        if given is not None and given < _LEAST_SECONDS:
            found.append(node.lineno)
    return found


def _limit_of(call: ast.Call) -> ast.expr | None:
    """The argument of a call that limits how long something may take."""
    name = ast.unparse(call.func)
    if name.endswith(("timeout", "fail_after", "process.wait")):
        return call.args[0] if call.args else None
    if name.endswith(".wait_for") and len(call.args) > 1:
        return call.args[1]
    return None


def _on_real_time() -> Iterator[Path]:
    """The files whose tests run on the machine's clock."""
    return (path for path in _FILES if not _OTHER_CLOCKS.search(text_of(path)))


def _unexplained(path: Path, find: Callable[[ast.Module], list[int]]) -> list[str]:
    lines = text_of(path).splitlines()
    return [
        _place(path, line)
        for line in find(tree_of(path))
        if not lines[line - 2].strip().startswith("#")
    ]


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(PROJECT)}:{line}"


def test_no_test_asserts_that_a_measured_time_is_short() -> None:
    files = [path for path in _on_real_time() if _READS_CLOCK.search(text_of(path))]
    assert [_place(path, line) for path in files for line in _time_asserts(tree_of(path))] == []


def test_a_limit_only_ends_a_test_that_hangs() -> None:
    files = [path for path in _on_real_time() if _LIMITS.search(text_of(path))]
    assert [place for path in files for place in _unexplained(path, _short_limits)] == []


@pytest.mark.parametrize(
    "source",
    [
        "began = monotonic()\nassert monotonic() - began < 5",
        "began = perf_counter()\ntook = perf_counter() - began\nassert 5 >= took",
        "def took():\n    return time.time() - began\nbegan = time.time()\nassert took() < LIMIT",
        "all = []\nall.append(perf_counter() - 1)\nassert min(all) < 5",
        "at = process_time()\nassert process_time() - at <= 1 and other",
    ],
)
def test_an_upper_bound_of_a_measured_time_is_found(source: str) -> None:
    assert len(_time_asserts(ast.parse(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "began = monotonic()\nassert monotonic() - began >= 5",
        "at = monotonic()\none, two = monotonic() - at, monotonic() - at\nassert two < 3 * one",
        "before = time.time()\nassert before <= row.created <= time.time()",
        "assert count < 5",
    ],
)
def test_a_lower_bound_and_a_measured_bound_are_allowed(source: str) -> None:
    assert _time_asserts(ast.parse(source)) == []


@pytest.mark.parametrize(
    "source",
    [
        "asyncio.timeout(5)",
        "fail_after(0.5)",
        "asyncio.wait_for(done, 5)",
        "SOON: Final = 5\nanyio.fail_after(SOON)",
        "server.process.wait(10)",
        "deadline = monotonic() + 5",
    ],
)
def test_a_short_limit_is_found(source: str) -> None:
    assert len(_short_limits(ast.parse(source))) == 1

"""``make mutants``: removes each guard in turn, and expects a test to fail.

A guard is a function of the product that checks and returns nothing. The cells of the table run
against a copy of the product in which the guard returns immediately. Every operation that calls the
guard during its cells must then fail one of them. Exits with 1 if the removal of a guard goes
unnoticed somewhere.
"""

from __future__ import annotations

import argparse
import ast
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from tests.guards.rules import Cell, table
from tests.guards.run import fault_of
from tests.guards.table import RULES
from tests.guards.valid_requests import prepare
from tests.mutants.not_decisive import is_decisive
from tests.support.clients.clients import WireClient
from tests.support.servers.server import PROJECT, running_server

_GUARDED: Final = ("api", "model")
_PREFIXES: Final = ("check", "_check", "_refuse")
_TRACER: Final = "guard_trace"


class Guard(NamedTuple):
    """A function; its body begins at ``line``, with ``indent`` columns before it."""

    path: str
    name: str
    line: int
    indent: int

    def __str__(self) -> str:
        module = self.path.removesuffix(".py").replace("/", ".")
        return f"dynactor.{module}.{self.name}"


def guards() -> list[Guard]:
    """All guards of the product, in the order of their files."""
    return [
        guard
        for package in _GUARDED
        for path in sorted((PROJECT / package).rglob("*.py"))
        for guard in _guards_in(path)
    ]


def _guards_in(path: Path) -> Iterator[Guard]:
    tree = ast.parse(path.read_text())
    scopes: list[tuple[str, ast.AST]] = [("", tree)]
    while scopes:
        prefix, scope = scopes.pop()
        for node in ast.iter_child_nodes(scope):
            if isinstance(node, ast.ClassDef):
                scopes.append((f"{node.name}.", node))
            elif isinstance(node, ast.FunctionDef) and _is_guard(node):
                first = node.body[1 if ast.get_docstring(node) is not None else 0]
                relative = str(path.relative_to(PROJECT))
                yield Guard(relative, prefix + node.name, first.lineno, first.col_offset)


def _is_guard(node: ast.FunctionDef) -> bool:
    returns_nothing = isinstance(node.returns, ast.Constant) and node.returns.value is None
    return returns_nothing and node.name.startswith(_PREFIXES)


@contextmanager
def changed_product(insertions: Mapping[Guard, str]) -> Iterator[Path]:
    """A copy of the product with a statement at the beginning of some guards' bodies."""
    with tempfile.TemporaryDirectory(prefix="guards-") as directory:
        copy = Path(directory)
        # Links are followed, so the copy is complete.
        shutil.copytree(
            PROJECT / "dynactor",
            copy / "dynactor",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        # Insert from the end of a file to its beginning, so that the other line numbers stay valid.
        for guard in sorted(insertions, key=lambda guard: guard.line, reverse=True):
            path = copy / "dynactor" / guard.path
            lines = path.read_text().splitlines(keepends=True)
            lines.insert(guard.line - 1, f"{' ' * guard.indent}{insertions[guard]}\n")
            path.write_text("".join(lines))
        yield copy


def cells_by_operation() -> dict[str, list[Cell]]:
    """The cells of the table; operations on tables come last, because they may change the table."""
    found: dict[str, list[Cell]] = {}
    for cell in table(RULES):
        if isinstance(cell, Cell):
            found.setdefault(cell.site.operation, []).append(cell)
    on_items = {name for name, cells in found.items() if any(cell.names_items for cell in cells)}
    return {
        name: found[name] for name in sorted(found, key=lambda name: (name not in on_items, name))
    }


def calls(all_guards: Iterable[Guard], cells: Mapping[str, list[Cell]]) -> dict[Guard, set[str]]:
    """The operations that call each guard during their cells."""
    by_name = {str(guard): guard for guard in all_guards}
    insertions = {
        guard: f"__import__({_TRACER!r}).called({name!r})" for name, guard in by_name.items()
    }
    called: dict[Guard, set[str]] = {guard: set() for guard in by_name.values()}
    with changed_product(insertions) as copy:
        log = copy / "called.log"
        log.touch()
        (copy / f"{_TRACER}.py").write_text(
            f"log = open({str(log)!r}, 'a', buffering=1)\n"
            "def called(name):\n    log.write(name + '\\n')\n"
        )
        with running_server(project=copy) as server, closing(WireClient(server.endpoint)) as wire:
            prepare(wire)
            with log.open() as names:
                names.read()
                for operation, of_operation in cells.items():
                    broken = [cell.name for cell in of_operation if fault_of(cell, wire)]
                    assert not broken, f"without any mutant: {broken}"
                    for name in set(names.read().split()):
                        called[by_name[name]].add(operation)
    return called


def failing_operations(
    guard: Guard, cells: Mapping[str, list[Cell]], operations: set[str]
) -> set[str]:
    """The operations that have a failing cell while the guard is removed."""
    missed = set()
    with (
        changed_product({guard: "return"}) as copy,
        running_server(project=copy) as server,
    ):
        with closing(WireClient(server.endpoint)) as wire:
            prepare(wire)
        for operation, of_operation in cells.items():
            if operation in operations and _has_failing_cell(server.endpoint, of_operation):
                missed.add(operation)
    return missed


def _has_failing_cell(endpoint: str, cells: list[Cell]) -> bool:
    with closing(WireClient(endpoint)) as wire:
        try:
            return any(fault_of(cell, wire) for cell in cells)
        except (OSError, HTTPException):
            # The server closed the connection, so the cell fails.
            return True


def main() -> int:
    """Try all guards, or those whose names contain one of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only guards whose names contain one of these")
    parser.add_argument("--workers", type=int, default=2, help="servers at a time")
    options = parser.parse_args()
    started = monotonic()
    cells = cells_by_operation()
    called = {
        guard: operations
        for guard, operations in calls(guards(), cells).items()
        if operations and (not options.names or any(name in str(guard) for name in options.names))
    }
    survivors = 0
    with ThreadPoolExecutor(options.workers) as pool:
        runs = {
            guard: pool.submit(failing_operations, guard, cells, operations)
            for guard, operations in called.items()
        }
        for guard, run in runs.items():
            missed = run.result()
            not_missed = {
                operation
                for operation in called[guard] - missed
                if is_decisive(str(guard), operation)
            }
            survivors += len(not_missed)
            outcome = f"NOT MISSED by {sorted(not_missed)}" if not_missed else "missed"
            print(
                f"{guard}: {outcome} ({len(missed)} of {len(called[guard])} operations)", flush=True
            )
    seconds = monotonic() - started
    print(f"{len(called)} guards, {survivors} survivors, {seconds:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())

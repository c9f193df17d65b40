"""A statement that is moved past an await, and the tests that must fail then."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.mutants.project_copy import PROJECT

_WAITS = (ast.Await, ast.AsyncFor, ast.AsyncWith)


class Order(NamedTuple):
    """A fault: one statement of a function happens before or after another one.

    ``file`` is relative to the project. ``function`` is a function or a method, such as
    ``Follower._end``. ``moved`` names the statement to move: its source begins with this text, as
    ``ast.unparse`` writes it, and no other statement of the function begins so. ``before`` or
    ``after`` names the statement that it is moved to, in ``function`` or in ``other_function``.
    Each of ``tests``, functions of ``test_file``, fails with the fault.
    """

    name: str
    file: str
    function: str
    moved: str
    test_file: str
    tests: Sequence[str]
    before: str = ""
    after: str = ""
    other_function: str = ""

    @property
    def test_ids(self) -> list[str]:
        """The tests as arguments of pytest."""
        return [f"{self.test_file}::{test}" for test in self.tests]

    @property
    def description(self) -> str:
        """The function and the move."""
        place = f"before '{self.before}'" if self.before else f"after '{self.after}'"
        where = f" of {self.other_function}" if self.other_function else ""
        return f"{self.file} {self.function}: '{self.moved}' {place}{where}"

    def problem(self) -> str | None:
        """Why the fault can't be planted in the working tree, None if it can."""
        if not (PROJECT / self.file).is_file():
            return f"{self.file} is missing"
        source = (PROJECT / self.file).read_text()
        try:
            changed = self.changed(source)
        except LookupError as error:
            return str(error)
        if changed == ast.unparse(ast.parse(source)):
            return f"{self.description} changes nothing"
        if not (PROJECT / self.test_file).is_file():
            return f"{self.test_file} is missing"
        tests = (PROJECT / self.test_file).read_text()
        missing = [test for test in self.tests if f"def {test}(" not in tests]
        return f"{self.test_file} has no test {missing[0]}" if missing else None

    def changed(self, source: str) -> str:
        """The source with the fault, without comments.

        Raises:
            LookupError: there is no such statement, there are several, or neither waits.
        """
        module = ast.parse(source)
        home, moved = _statement(module, self.function, self.moved)
        other_function = self.other_function or self.function
        place, other = _statement(module, other_function, self.before or self.after)
        if not any(isinstance(each, _WAITS) for each in (*ast.walk(moved), *ast.walk(other))):
            raise LookupError(f"neither '{self.moved}' nor the other statement waits")
        home.remove(moved)
        if not home:
            home.append(ast.Pass())
        place.insert(place.index(other) + (not self.before), moved)
        return ast.unparse(ast.fix_missing_locations(module))

    @contextmanager
    def planted(self, directory: Path) -> Iterator[None]:
        """Plant the fault in a copy of the project, and remove it when the context ends."""
        path = directory / self.file
        healthy = path.read_text()
        path.write_text(self.changed(healthy))
        try:
            yield
        finally:
            path.write_text(healthy)


def _statement(module: ast.Module, function: str, name: str) -> tuple[list[ast.stmt], ast.stmt]:
    """The statement of a function that a text names, and the block that has it."""
    scope: ast.AST = module
    for part in function.split("."):
        inner = [each for each in ast.walk(scope) if getattr(each, "name", None) == part]
        if not inner:
            raise LookupError(f"there is no function {function}")
        scope = inner[0]
    found = [
        (block, statement)
        for node in ast.walk(scope)
        for block in (getattr(node, part, None) for part in ("body", "orelse", "finalbody"))
        if isinstance(block, list)
        for statement in block
        if ast.unparse(statement).startswith(name)
    ]
    if len(found) != 1:
        raise LookupError(f"{function} has {len(found)} statements '{name}', not one")
    return found[0]

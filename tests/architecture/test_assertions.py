"""Each test asserts something: itself, or in a function of the tests that it calls.

A test that only runs code also passes if that code does nothing. A request that is answered and a
waiter that ends are no assertions: a test says what they have led to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.architecture.sources import PROJECT, text_of, tree_of

_TESTS: Final = sorted((PROJECT / "tests").rglob("test_*.py"))
_ASSERTING_CALLS: Final = frozenset(("pytest.raises", "pytest.fail", "pytest.warns", "expect"))
_ASSERTION: Final = re.compile(r"\bassert |pytest\.(raises|fail|warns)|\bexpect\(|AssertionError")
# A test begins at the left margin, and ends before the next line there that is no closing bracket.
_TEST: Final = re.compile(r"^(?:async )?def (test_\w+)\((?:.*\n)(?:(?:[ \t)].*)?\n)*", re.MULTILINE)

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def _narrows(test: ast.expr) -> bool:
    """Whether an assertion only tells the type checker what a value is."""
    text = ast.unparse(test)
    return text.endswith(" is not None") or text.startswith("isinstance(")


def _asserts(node: ast.AST, *, is_helper: bool = False) -> bool:
    """Whether a node contains an assertion of its own; a helper's must do more than narrow."""
    return any(
        (isinstance(each, ast.Assert) and not (is_helper and _narrows(each.test)))
        or (isinstance(each, ast.Call) and ast.unparse(each.func) in _ASSERTING_CALLS)
        or (isinstance(each, ast.Raise) and "AssertionError" in ast.unparse(each))
        for each in ast.walk(node)
    )


class _Module:
    """The functions, methods and imports of a file of the tests."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions = {each.name: each for each in tree.body if isinstance(each, _Function)}
        self.methods = {
            each.name: each
            for owner in tree.body
            if isinstance(owner, ast.ClassDef)
            for each in owner.body
            if isinstance(each, _Function)
        }
        self.imported = {
            alias.asname or alias.name: (each.module, alias.name)
            for each in ast.walk(tree)
            if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("tests.")
            for alias in each.names
        }

    def called(self, function: _Function) -> Iterator[tuple[_Module, _Function]]:
        """The functions of the tests that a function calls, and the files that have them."""
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Attribute):
                for module in (self, *self._modules()):
                    if node.func.attr in module.methods:
                        yield module, module.methods[node.func.attr]
            elif isinstance(node.func, ast.Name):
                yield from self._named(node.func.id)

    def _named(self, name: str) -> Iterator[tuple[_Module, _Function]]:
        if name in self.functions:
            yield self, self.functions[name]
        elif name in self.imported:
            dotted, original = self.imported[name]
            path = _path(dotted)
            if path.is_file():
                yield from _module(path)._named(original)

    def _modules(self) -> Iterator[_Module]:
        """The files of the imported classes."""
        for dotted, original in sorted(set(self.imported.values())):
            if original[0].isupper() and (path := _path(dotted)).is_file():
                yield _module(path)


def _path(dotted: str) -> Path:
    return PROJECT.joinpath(*dotted.split(".")).with_suffix(".py")


_modules: Final[dict[Path, _Module]] = {}


def _module(path: Path) -> _Module:
    if path not in _modules:
        _modules[path] = _Module(tree_of(path))
    return _modules[path]


def _is_checked(module: _Module, function: _Function, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a function asserts something, or a function that it calls does."""
    return _asserts(function, is_helper=bool(seen)) or any(
        _is_checked(other, called, seen | {function.name, called.name})
        for other, called in module.called(function)
        if called.name not in seen
    )


def _without_own_assertion(text: str) -> list[str]:
    """The tests whose own text contains no assertion."""
    return [match[1] for match in _TEST.finditer(text) if not _ASSERTION.search(match[0])]


def test_each_test_asserts_something() -> None:
    found = [
        f"{path.relative_to(PROJECT)}: {name}"
        for path in _TESTS
        for name in _without_own_assertion(text_of(path))
        # A name in a text, such as the source of a suite to run, is no test of this file.
        if name in _module(path).functions
        and not _is_checked(_module(path), _module(path).functions[name])
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "is_checked"),
    [
        ("def test_a(wire):\n    wire('Scan', {})\n", False),
        ("def test_a(\n    wire,\n):\n    check(wire)\n\ndef check(wire):\n    wire()\n", False),
        ("def test_a():\n    check()\n\ndef check():\n    assert True\n", True),
        ("def test_a():\n    one()\n\ndef one():\n    two()\n\ndef two():\n    one()\n", False),
        ("class A:\n    def run(self):\n        assert 1\n\ndef test_a(it):\n    it.run()\n", True),
        ("async def test_a():\n    with pytest.raises(ValueError):\n        await one()\n", True),
        ("def test_a(page):\n    expect(page).to_be_visible()\n", True),
    ],
)  # fmt: skip
def test_the_check_finds_a_test_without_assertions(source: str, *, is_checked: bool) -> None:
    module = _Module(ast.parse(source))
    names = _without_own_assertion(source)
    assert all(_is_checked(module, module.functions[name]) for name in names) is is_checked

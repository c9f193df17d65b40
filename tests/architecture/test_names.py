"""A class name has one meaning in the product, and no name needs its place to be understood."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.architecture.sources import SOURCES, tree


def classes() -> dict[str, list[str]]:
    """The modules of each class, by the class's name without an underscore at its start."""
    found = defaultdict(list)
    for module in SOURCES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(module)
    return found


def identifiers() -> Iterator[str]:
    """The names that the product gives to functions, arguments, variables and attributes."""
    for module in SOURCES:
        for node in ast.walk(tree(module)):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name
                case ast.arg(arg=name):
                    yield name
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    yield name


def is_incomplete(name: str) -> bool:
    """Whether a name is about a thing that it does not say."""
    words = name.strip("_").lower()
    return words.startswith("of_") or words.endswith("_of")


def test_a_class_name_occurs_once_in_the_product():
    assert {name: modules for name, modules in classes().items() if len(modules) > 1} == {}


def test_no_name_begins_with_of_or_ends_in_of():
    """A name such as ``of_table`` or ``key_of`` says too little away from its definition."""
    assert set(filter(is_incomplete, identifiers())) == set()


def test_incomplete_names_are_found():
    assert list(map(is_incomplete, ("of_table", "_key_of", "_OF_AWS"))) == [True] * 3
    assert list(map(is_incomplete, ("offset", "proof", "key", "part_of_key"))) == [False] * 4

"""The imports of each module of the product."""

from __future__ import annotations

import ast
from functools import cache

from tests.architecture.sources import SOURCES, tree


@cache
def nodes(name: str) -> tuple[ast.AST, ...]:
    """All nodes of a module's tree, at all depths."""
    return tuple(ast.walk(tree(name)))


@cache
def imported_names(name: str) -> tuple[str, ...]:
    """Every name a module imports, as ``package.module`` or ``package.module.name``."""
    found: list[str] = []
    for node in nodes(name):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(found)


@cache
def imported_modules(name: str) -> frozenset[str]:
    """The modules of the product that a module imports."""
    found = set()
    for imported in imported_names(name):
        module = imported if imported in SOURCES else imported.rpartition(".")[0]
        if module in SOURCES:
            found.add(module)
    return frozenset(found)

"""The product's source files by module name, and their trees, each parsed once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parents[2]
# From bottom to top: a file imports from its own floor and from those before it.
FLOORS: Final = ("model", "storage", "streams", "actors", "api")


def module_name(path: Path) -> str:
    """The import name of a file of the five folders."""
    parts = ("dynactor", *path.relative_to(PROJECT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Search the five folders themselves, because on Python 3.11 rglob does not follow the symbolic
# links in dynactor/.
SOURCES: Final = {
    module_name(path): path for floor in FLOORS for path in sorted((PROJECT / floor).rglob("*.py"))
}


@cache
def text_of(path: Path) -> str:
    """The text of a file, read once."""
    return path.read_text()


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file, parsed once; callers never change it."""
    return ast.parse(text_of(path))


def tree(name: str) -> ast.Module:
    """The syntax tree of a module of the product."""
    return tree_of(SOURCES[name])

"""The kinds of faults that a program can plant in one line of code.

Each kind yields replacements of a node's source. Texts, annotations, log calls and type-checking
imports are left alone, because no behavior depends on them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

_LOGGERS: Final = ("log", "_log", "logger", "_logger", "warnings", "super()")
_OPPOSITES: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_PARTNERS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Site(NamedTuple):
    """A node to replace: its kind of fault, its place, and its new source."""

    kind: str
    line: int
    start: int
    end_line: int
    end: int
    new: str

    def planted(self, source: str) -> str:
        """The source with the fault; columns count bytes, as the ones of syntax trees do."""
        lines = source.encode().splitlines(keepends=True)
        before = b"".join(lines[: self.line - 1]) + lines[self.line - 1][: self.start]
        after = lines[self.end_line - 1][self.end :] + b"".join(lines[self.end_line :])
        return (before + self.new.encode() + after).decode()


_Found: TypeAlias = Iterator[tuple[ast.AST, str]]


def _comparisons(node: ast.AST) -> _Found:
    """Another operator: ``<`` becomes ``<=``, ``==`` becomes ``!=``."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        yield node, f"({left}) {_OPPOSITES[type(node.ops[0])]} ({right})"
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield node, "(" + word.join(f"({ast.unparse(value)})" for value in node.values) + ")"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"({ast.unparse(node.operand)})"


def _bounds(node: ast.AST) -> _Found:
    """A whole number that is one larger, or ``max`` in place of ``min``."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield node, str(node.value + 1)
    elif isinstance(node, ast.Name) and node.id in _PARTNERS and isinstance(node.ctx, ast.Load):
        yield node, _PARTNERS[node.id]


def _forgotten_calls(node: ast.AST) -> _Found:
    """A statement that only calls a function is left out, with its await."""
    if isinstance(node, ast.Expr):
        value = node.value
        while isinstance(value, ast.Await):
            value = value.value
        if isinstance(value, ast.Call) and not ast.unparse(value.func).startswith(_LOGGERS):
            yield node, "pass"


def _swapped_names(node: ast.AST) -> _Found:
    """Two names that follow each other in the arguments of a call are exchanged."""
    if not isinstance(node, ast.Call):
        return
    for left, right in zip(node.args, node.args[1:], strict=False):
        if isinstance(left, ast.Name) and isinstance(right, ast.Name) and left.id != right.id:
            swapped = {id(left): right, id(right): left}
            arguments = [ast.unparse(swapped.get(id(each), each)) for each in node.args]
            named = [
                f"{each.arg}={ast.unparse(each.value)}" if each.arg else ast.unparse(each)
                for each in node.keywords
            ]
            yield node, f"{ast.unparse(node.func)}({', '.join(arguments + named)})"


def _lost_awaits(node: ast.AST) -> _Found:
    """A statement no longer waits for what it starts."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Await)
        and isinstance(node.value.value, ast.Call)
    ):
        started = ast.unparse(node.value.value)
        yield node, f"__import__('asyncio').ensure_future({started})"


KINDS: Final[dict[str, Callable[[ast.AST], _Found]]] = {
    "comparison": _comparisons,
    "bound": _bounds,
    "forgotten call": _forgotten_calls,
    "swapped names": _swapped_names,
    "lost await": _lost_awaits,
}


def sites(source: str) -> list[Site]:
    """All faults that can be planted in a file, in the order of their places."""
    found = [
        Site(
            kind,
            replaced.lineno,
            replaced.col_offset,
            replaced.end_lineno or replaced.lineno,
            replaced.end_col_offset or 0,
            new,
        )
        for node in _executed(ast.parse(source))
        for kind, find in KINDS.items()
        for replaced, new in find(node)
        if isinstance(replaced, ast.expr | ast.stmt)
    ]
    return sorted(found, key=lambda site: (site.line, site.start, site.kind, site.new))


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below this one, without annotations, assertions, and what only types need."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Assert | ast.JoinedStr):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            yield child
            yield from _executed(child)

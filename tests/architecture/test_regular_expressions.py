"""Every regular expression of the product works the same on every supported Python.

Python 3.11.2, which Debian 12 ships, matches possessive quantifiers and atomic groups wrongly.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from re import _constants as codes
from re import _parser as parser

import pytest

from tests.architecture.sources import SOURCES, tree

FUNCTIONS = frozenset(
    {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
)
# The patterns of members' limits, which are declared with the limits.
DECLARED_ELSEWHERE = {("dynactor.api.requests.input_decoder", "limits.pattern")}
REFUSED = {codes.POSSESSIVE_REPEAT, codes.POSSESSIVE_REPEAT_ONE, codes.ATOMIC_GROUP}


def pattern_arguments(tree: ast.Module) -> Iterator[ast.expr]:
    """The pattern of each call of ``re``, and each argument called ``pattern``."""
    own_names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "re"
        for alias in node.names
        if alias.name in FUNCTIONS
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        named = [word.value for word in node.keywords if word.arg == "pattern"]
        match node.func:
            case ast.Attribute(ast.Name("re"), name) if name in FUNCTIONS:
                yield from named or node.args[:1]
            case ast.Name(name) if name in own_names:
                yield from named or node.args[:1]
            case _:
                yield from named


def text_of(expression: ast.expr, constants: dict[str, object]) -> str:
    """A pattern as it is compiled: its pieces joined, its module's constants filled in."""
    match expression:
        case ast.Constant(value):
            return str(value)
        case ast.JoinedStr(pieces):
            return "".join(text_of(piece, constants) for piece in pieces)
        case ast.FormattedValue(value, conversion=-1, format_spec=None):
            return text_of(value, constants)
        case ast.BinOp(left, ast.Add(), right):
            return text_of(left, constants) + text_of(right, constants)
        case ast.Name(name) if isinstance(constants.get(name), str | int):
            return str(constants[name])
    raise AssertionError(f"no constant: {ast.unparse(expression)}")


def operations(parsed: object) -> Iterator[object]:
    """The codes of a parsed pattern, at all depths."""
    if isinstance(parsed, parser.SubPattern | list | tuple):
        for part in parsed:
            yield from operations(part)
    elif isinstance(parsed, type(codes.ANY)):
        yield parsed


def refused_in(pattern: str) -> set[object]:
    # The flags that matter here change how a pattern is read; VERBOSE is the only one in use.
    return {
        operation
        for flags in (0, re.VERBOSE)
        for operation in operations(parser.parse(pattern, flags))
    } & REFUSED


@cache
def patterns() -> list[tuple[str, str]]:
    found = []
    for name in SOURCES:
        arguments = [
            argument
            for argument in pattern_arguments(tree(name))
            if (name, ast.unparse(argument)) not in DECLARED_ELSEWHERE
        ]
        if arguments:
            constants = vars(import_module(name))
            found += [(name, text_of(argument, constants)) for argument in arguments]
    return found


@pytest.mark.parametrize(
    "pattern", ["a++", "a*+", "a?+", "a{1,2}+", "(?:ab)*+", "(?>ab)", "(x(?:y|(z++)))?", "(?=a++)"]
)
def test_the_check_finds_refused_patterns(pattern: str):
    assert refused_in(pattern)


def test_the_check_finds_patterns_that_are_built_of_pieces():
    found = patterns()
    assert {
        "dynactor.model.partiql.tokens",
        "dynactor.model.values.number",
        "dynactor.api.requests.shapes",
        "dynactor.api.requests.table_arn",
    } <= {name for name, _ in found}
    assert ("dynactor.model.partiql.binding", r"[a-zA-Z0-9_.-]{3,255}\Z") in found


def test_no_pattern_has_possessive_quantifiers_or_atomic_groups():
    assert [found for found in patterns() if refused_in(found[1])] == []

"""The parser: trees, positions, and invalid statements."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from dynactor.model.partiql import syntax
from dynactor.model.partiql.keywords import KEYWORDS
from dynactor.model.partiql.parser import parse
from dynactor.model.partiql.tokens import StatementTokenKind, tokenize


def where(text: str) -> syntax.Expression:
    select, _ = parse(f"SELECT * FROM abc WHERE {text}")
    assert isinstance(select, syntax.SelectNode)
    assert select.where is not None
    return select.where


def shape(expression: syntax.Expression) -> Any:
    """An expression as nested lists, without positions."""
    match expression:
        case syntax.Literal(value):
            (content,) = value.values()
            return f"'{content}'" if "S" in value else content
        case syntax.VariableNode(name):
            return name
        case syntax.Path(root, steps):
            return ["path", shape(root), *map(shape, steps)]
        case syntax.CallNode(name, arguments):
            return [name + "()", *map(shape, arguments)]
        case syntax.Sequence(elements, _, is_bag):
            return ["bag" if is_bag else "list", *map(shape, elements)]
        case syntax.Tuple(members):
            return ["tuple", *[[shape(name), shape(value)] for name, value in members]]
        case syntax.OperationNode(operator, operands):
            return [operator, *map(shape, operands)]
        case syntax.TypeName(name):
            return name
        case syntax.Parameter(position):
            return position
        case syntax.Star(_, in_brackets):
            return "[*]" if in_brackets else "*"
        case _:
            return type(expression).__name__


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", ["=", "a", "1"]),
        ("a!=1", ["<>", "a", "1"]),
        ("((a)) = ((1))", ["=", "a", "1"]),
        (
            "a = 1 OR b = 2 AND c = 3",
            ["or", ["=", "a", "1"], ["and", ["=", "b", "2"], ["=", "c", "3"]]],
        ),
        (
            "(a = 1 OR b = 2) AND c = 3",
            ["and", ["or", ["=", "a", "1"], ["=", "b", "2"]], ["=", "c", "3"]],
        ),
        ("a = 1 AND b = 2 and c = 3", ["and", ["=", "a", "1"], ["=", "b", "2"], ["=", "c", "3"]]),
        ("NOT a = 1 AND b = 2", ["and", ["not", ["=", "a", "1"]], ["=", "b", "2"]]),
        ("NOT NOT a = 1", ["not", ["not", ["=", "a", "1"]]]),
        ("a BETWEEN 1 AND 2 AND b = 3", ["and", ["between", "a", "1", "2"], ["=", "b", "3"]]),
        ("a NOT BETWEEN 1 AND 2", ["not", ["between", "a", "1", "2"]]),
        ("a IN (1)", ["in", "a", ["list", "1"]]),
        ("a NOT IN [1, 2]", ["not", ["in", "a", ["list", "1", "2"]]]),
        ("a IS NOT MISSING", ["not", ["is", "a", "missing"]]),
        ("a LIKE 'x'", ["like", "a", "'x'"]),
        ("a = 1 + 2 * 3 - 4", ["=", "a", ["-", ["+", "1", ["*", "2", "3"]], "4"]]),
        ("a = 1 - 2 - 3", ["=", "a", ["-", ["-", "1", "2"], "3"]]),
        ("a = b || c + d", ["=", "a", ["+", ["||", "b", "c"], "d"]]),
        ("a = b < c", ["=", "a", ["<", "b", "c"]]),
        ("a < b = c", ["=", ["<", "a", "b"], "c"]),
        ("a < b IN c", ["in", ["<", "a", "b"], "c"]),
        ("a BETWEEN 1 AND 2 = true", ["=", ["between", "a", "1", "2"], True]),
        ("a IS BOOL = true", ["=", ["is", "a", "boolean"], True]),
        ("a = NOT b = c", ["=", "a", ["not", ["=", "b", "c"]]]),
        ("a = -1", ["=", "a", "-1"]),
        ("a = - -1", ["=", "a", "1"]),
        ("a = -b", ["=", "a", ["-", "b"]]),
        ("a = 1.50e2", ["=", "a", "1.50e2"]),
        ("a.b['c'][0].\"d e\" = 1", ["=", ["path", "a", "'b'", "'c'", "0", "'d e'"], "1"]),
        ("a.*[*] = 1", ["=", ["path", "a", "*", "[*]"], "1"]),
        (
            "a = [1, <<2>>, {'b': (3, 4)}]",
            ["=", "a", ["list", "1", ["bag", "2"], ["tuple", ["'b'", ["list", "3", "4"]]]]],
        ),
        (
            "a = [] AND b = {} AND c = <<>>",
            ["and", ["=", "a", ["list"]], ["=", "b", ["tuple"]], ["=", "c", ["bag"]]],
        ),
        ("f(a, ?) = ?", ["=", ["f()", "a", 0], 1]),
        ("count(*) = f()", ["=", ["count()"], ["f()"]]),
        ("size(a) = 1", ["=", ["size()", "a"], "1"]),
        ("a = true OR a = NULL", ["or", ["=", "a", True], ["=", "a", True]]),
        ("@a = 'it''s'", ["=", "a", "'it's'"]),
        ('"a""b" = 1', ["=", 'a"b', "1"]),
        ("Select_ = 1", ["=", "Select_", "1"]),
    ],
)
def test_operators_bind_as_in_sql(text: str, expected: Any) -> None:
    assert shape(where(text)) == expected


def test_parameters_are_counted_in_their_order() -> None:
    text = "UPDATE abc SET a = ?, b = list_append(?, ?) WHERE c = ?"
    tree, parameters = parse(text)
    assert parameters == 4
    assert isinstance(tree, syntax.UpdateNode)
    assert isinstance(tree.where, syntax.OperationNode)
    assert shape(tree.where) == ["=", "c", 3]


def test_positions_in_errors_count_lines_and_columns_from_one() -> None:
    text = "SELECT a,\n  'x\ny' -- comment\n /* more\n */ FROM abc"
    places = [(token.text, token.line, token.column, token.length) for token in tokenize(text)]
    assert places == [
        ("select", 1, 1, 6),
        ("a", 1, 8, 1),
        (",", 1, 9, 1),
        ("x\ny", 2, 3, 5),
        ("from", 5, 5, 4),
        ("abc", 5, 10, 3),
        ("", 5, 13, 0),
    ]


def test_a_keyword_is_a_name_only_in_quotes() -> None:
    written_forms = ((each, each.upper(), each.title()) for each in sorted(KEYWORDS))
    for written in chain.from_iterable(written_forms):
        assert tokenize(written)[0].kind is StatementTokenKind.KEYWORD
        (token, _) = tokenize(f'"{written}"')
        assert (token.kind, token.text) == (StatementTokenKind.NAME, written)
        (token, _) = tokenize(f"{written}_")
        assert token.kind is StatementTokenKind.NAME

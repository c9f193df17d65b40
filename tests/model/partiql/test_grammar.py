"""The grammar of statements, and the messages for unknown syntax: ``grammar.txt``."""

from __future__ import annotations

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.partiql.parser import parse
from tests.support.tables.statement_scripts import grammar, heading_of


def answer(text: str) -> str:
    """The parser's result for a text, worded as in the headings of ``grammar.txt``."""
    try:
        parse(text)
    except ValidationException as refusal:
        return heading_of(refusal.message)
    return "accepted"


def test_the_parser_agrees_with_the_grammar() -> None:
    cases = list(grammar())
    assert len(cases) > 600
    assert [(text, found) for heading, text in cases if (found := answer(text)) != heading] == []


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("1e2147483647", "accepted"),
        ("1e-2147483647", "accepted"),
        ("0.01e2147483647", "accepted"),
        ("1e2147483648", "no token"),
        ("1e99999999999", "no token"),
        ("1e-2147483648", "no token"),
        ("1.5e-2147483647", "no token"),
        ("1e", "no token"),
        ("1e+", "no token"),
        ("1e+00000000000000000005", "accepted"),
    ],
)
def test_an_exponent_or_scale_beyond_32_bits_is_invalid(number: str, expected: str) -> None:
    assert answer(f"SELECT * FROM abc WHERE a = {number}") == expected

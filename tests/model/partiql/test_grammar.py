"""The grammar of statements, and the messages for unknown syntax: ``grammar.txt``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.partiql.parser import parse

NOT_WELL_FORMED = "Statement wasn't well formed, can't be processed: "


def cases() -> Iterator[tuple[str, str]]:
    """Each text with the heading of its group."""
    group = ""
    for line in (Path(__file__).parent / "grammar.txt").read_text().splitlines():
        if line.startswith("    "):
            yield group, line.removeprefix("    ")
        elif line and not line.startswith("#"):
            group = line


def answer(text: str) -> str:
    """The parser's result for a text, worded as in the headings of ``grammar.txt``."""
    try:
        parse(text)
    except ValidationException as refusal:
        if refusal.message.startswith(NOT_WELL_FORMED):
            return refusal.message.removeprefix(NOT_WELL_FORMED) or "no token"
    return "accepted"


@pytest.mark.parametrize("case", list(cases()), ids=" ← ".join)
def test_the_parser_agrees_with_the_grammar(case: tuple[str, str]) -> None:
    group, text = case
    assert answer(text) == group


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

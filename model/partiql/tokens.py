"""The tokens of PartiQL statements."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from dynactor.model.errors import ValidationException
from dynactor.model.partiql.keywords import KEYWORDS


class StatementTokenKind(Enum):
    """The kind of a token."""

    KEYWORD = "a word of the language, in any case"
    NAME = "an identifier, bare or in double quotes"
    STRING = "a text in single quotes"
    NUMBER = "a number without sign"
    ION = "a literal of Amazon Ion, in backquotes"
    SYMBOL = "an operator or a bracket"
    END = "the end of the text"


class StatementToken(NamedTuple):
    """A word of a statement and its position.

    ``text`` is its value: a keyword in lower case, a name or string without its quotes. Lines and
    columns count from one; ``length`` is the length of the word as written.
    """

    kind: StatementTokenKind
    text: str
    line: int
    column: int
    length: int

    @property
    def at(self) -> str:
        """The position as DynamoDB's messages show it: `` at 1:8:5``."""
        return f" at {self.line}:{self.column}:{self.length}"


# The last alternatives match anywhere, so the pattern never backtracks into the blanks and comments
# before the token. Possessive quantifiers would express that, but Python 3.11.2 matches them
# wrongly.
_TOKEN: Final = re.compile(
    r"""(?:[ \t\r\n\f\v] | --[^\n]* | /\*.*?\*/)*(?:
      (?P<WORD>[A-Za-z_$][A-Za-z0-9_$]*)
    | (?P<QUOTED>"[^"]*(?:""[^"]*)*"(?!"))
    | (?P<STRING>'[^']*(?:''[^']*)*'(?!'))
    | (?P<NUMBER>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]*)?)
    | (?P<ION>`[^`]+`)
    | (?P<SYMBOL><<|>>|<>|<=|>=|!=|\|\||/(?!\*)|[=<>()\[\]{}.,:;?*%+@-])
    | (?P<END>\Z)
    | (?P<UNKNOWN>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
# The same operator in two spellings.
_SYNONYMS: Final = {"!=": "<>"}
_INT_MIN: Final = -(2**31)
_INT_MAX: Final = 2**31 - 1


def not_well_formed(reason: str) -> ValidationException:
    """The error for an invalid statement; ``reason`` is the PartiQL parser's message."""
    return ValidationException(f"Statement wasn't well formed, can't be processed: {reason}")


def tokenize(text: str) -> list[StatementToken]:
    """The tokens of a statement, and END; raises ``ValidationException``, without a reason."""
    tokens: list[StatementToken] = []
    position = 0
    # The start of the current line, and the position up to which lines are counted.
    line, line_start, counted = 1, 0, 0
    while True:
        match = _TOKEN.match(text, position)
        assert match is not None
        group = match.lastgroup
        assert group is not None
        if group == "UNKNOWN" or (group == "NUMBER" and not _is_decimal(match[group])):
            raise not_well_formed("")
        start, position = match.start(group), match.end()
        newlines = text.count("\n", counted, start)
        if newlines:
            line += newlines
            line_start = text.rindex("\n", counted, start) + 1
        counted = start
        kind, meaning = _meaning(group, match[group])
        tokens.append(StatementToken(kind, meaning, line, start - line_start + 1, position - start))
        if kind is StatementTokenKind.END:
            return tokens


def _meaning(group: str, written: str) -> tuple[StatementTokenKind, str]:
    if group == "WORD":
        word = written.lower()
        return (
            (StatementTokenKind.KEYWORD, word)
            if word in KEYWORDS
            else (StatementTokenKind.NAME, written)
        )
    if group == "QUOTED":
        return StatementTokenKind.NAME, written[1:-1].replace('""', '"')
    if group == "STRING":
        return StatementTokenKind.STRING, written[1:-1].replace("''", "'")
    if group == "SYMBOL":
        return StatementTokenKind.SYMBOL, _SYNONYMS.get(written, written)
    return StatementTokenKind[group], written


def _is_decimal(written: str) -> bool:
    """Whether Java's BigDecimal accepts a number: its exponent and scale are 32-bit."""
    digits, has_exponent, exponent = written.lower().partition("e")
    if not has_exponent:
        return True
    if not exponent.lstrip("+-"):
        return False
    decimals = len(digits.partition(".")[2])
    power = int(exponent)
    return _INT_MIN <= power <= _INT_MAX and _INT_MIN <= decimals - power <= _INT_MAX

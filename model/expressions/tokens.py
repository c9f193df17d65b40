"""The tokens of an expression, and the error that points at one of them."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from dynactor.model.errors import ValidationException


class TokenKind(Enum):
    """The kind of a token."""

    WORD = "an attribute name, a function name or a keyword"
    NAME = "a placeholder of a name, #x"
    VALUE = "a placeholder of a value, :x"
    INDEX = "a position in a list"
    SYMBOL = "an operator or a bracket"
    UNKNOWN = "a character that no expression has"
    END = "the end of the text"


class Token(NamedTuple):
    """A word of an expression, with its position in the text."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_keyword(self, keyword: str) -> bool:
        """Whether the token is this keyword (given in capitals), in any case."""
        return self.kind is TokenKind.WORD and self.text.upper() == keyword


# A number has no leading zeros: DynamoDB reads 01 as two tokens.
_TOKEN: Final = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<WORD>[A-Za-z][A-Za-z0-9_]*)
    | (?P<NAME>\#[A-Za-z0-9_]+)
    | (?P<VALUE>:[A-Za-z0-9_]+)
    | (?P<SYMBOL><>|<=|>=|[=<>()\[\].,+-])
    | (?P<INDEX>0|[1-9][0-9]*)
    | (?P<END>\Z)
    | (?P<UNKNOWN>.)
    )""",
    re.VERBOSE | re.DOTALL,
)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, with an END as the last one."""
    tokens: list[Token] = []
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        assert match is not None
        assert match.lastgroup is not None
        kind = TokenKind[match.lastgroup]
        tokens.append(Token(kind, match[kind.name], match.start(kind.name), match.end()))
        if kind is TokenKind.END:
            return tokens
        position = match.end()


def syntax_error(text: str, tokens: list[Token], at: int) -> ValidationException:
    """DynamoDB's error for a token at a wrong position, shown with its neighbors."""
    token = tokens[at]
    start = tokens[at - 1].start if at > 0 else 0
    end = tokens[at + 1].end if token.kind is not TokenKind.END else len(text)
    near = text[start:end].rstrip(" \t\r\n") if _ends_before_end(tokens, at) else text[start:end]
    shown = "<EOF>" if token.kind is TokenKind.END else token.text
    return ValidationException(f'Syntax error; token: "{shown}", near: "{near}"')


def _ends_before_end(tokens: list[Token], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].kind is TokenKind.END

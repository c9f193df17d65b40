"""A position in the tokens of a statement, with the methods by which parsers consume tokens."""

from __future__ import annotations

from typing import Final

from dynactor.model.errors import ValidationException
from dynactor.model.limits import EXPRESSION_OPERATORS
from dynactor.model.partiql.tokens import (
    StatementToken,
    StatementTokenKind,
    not_well_formed,
    tokenize,
)
from dynactor.model.values import attribute_value

# The maximum nesting of brackets and operators. Documents may have 32 levels, and each costs the
# parser a dozen calls.
DEPTH: Final = 40

TOO_MANY_OPERATORS: Final = (
    f"The expression contains too many operators; operator count: {EXPRESSION_OPERATORS + 1}"
)


# The names of missing symbols in messages.
_SYMBOL_NAMES: Final = {
    "(": "LEFT_PAREN",
    ")": "RIGHT_PAREN",
    "]": "RIGHT_BRACKET",
    "}": "RIGHT_CURLY",
    ">>": "RIGHT_DOUBLE_ANGLE_BRACKET",
    ":": "COLON",
    ",": "COMMA",
}


_OPENING: Final = frozenset({"(", "[", "{", "<<"})
_CLOSING: Final = frozenset({")", "]", "}", ">>"})


class TokenCursor:
    """Consumes one token after another; ``at`` is the position of the next one.

    ``parameters`` and ``operators`` count the tokens consumed so far. ``depth`` is the number of
    expressions around the current position.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self.parameters = 0
        self.operators = 0
        self.depth = 0

    @property
    def token(self) -> StatementToken:
        """The current token."""
        return self.tokens[self.at]

    def take(self) -> StatementToken:
        """Consume the current token."""
        token = self.tokens[self.at]
        self.at += 1
        return token

    def is_symbol(self, symbol: str) -> bool:
        """Whether the next token is this symbol."""
        token = self.tokens[self.at]
        return token.kind is StatementTokenKind.SYMBOL and token.text == symbol

    def accept(self, symbol: str) -> bool:
        """Consume this symbol if it is next."""
        found = self.is_symbol(symbol)
        self.at += found
        return found

    def expect(self, symbol: str) -> None:
        """Consume this symbol, or fail."""
        if not self.accept(symbol):
            raise not_well_formed(f"Expected {_SYMBOL_NAMES[symbol]}")

    def is_keyword(self, *keywords: str) -> bool:
        """Whether one of these keywords is next."""
        token = self.tokens[self.at]
        return token.kind is StatementTokenKind.KEYWORD and token.text in keywords

    def accept_keyword(self, keyword: str) -> bool:
        """Consume this keyword if it is next."""
        found = self.is_keyword(keyword)
        self.at += found
        return found

    def expect_keyword(self, keyword: str, otherwise: str | None = None) -> None:
        """Consume this keyword, or fail for the reason ``otherwise``."""
        if not self.accept_keyword(keyword):
            raise not_well_formed(otherwise or f"Expected {keyword.upper()} keyword")

    def expect_name(self, otherwise: str) -> StatementToken:
        """Consume an identifier, or fail for the reason ``otherwise``."""
        if self.token.kind is not StatementTokenKind.NAME:
            raise not_well_formed(otherwise)
        return self.take()

    @property
    def is_at_end(self) -> bool:
        """Whether the whole text is consumed."""
        return self.tokens[self.at].kind is StatementTokenKind.END

    def accept_words(self, *words: str) -> bool:
        """Consume these unquoted words if all of them are next, in any case."""
        following = self.tokens[self.at : self.at + len(words)]
        # A quoted name is not such a word. Its quotes make it longer in the text.
        found = len(following) == len(words) and all(
            token.text.lower() == word and token.length == len(word)
            for token, word in zip(following, words, strict=True)
        )
        self.at += len(words) * found
        return found

    def skip(self) -> None:
        """Consume the tokens before the enclosing bracket or the end: DynamoDB refuses them."""
        opened = 0
        while not self.is_at_end and (opened or not self.is_symbol(";")):
            token = self.token
            if token.kind is StatementTokenKind.SYMBOL:
                opened += (token.text in _OPENING) - (token.text in _CLOSING)
                if opened < 0:
                    return
            self.take()

    def enter(self) -> None:
        """Enter a deeper level, until ``leave``; raises ``ValidationException`` if too deep."""
        self.depth += 1
        if self.depth > DEPTH:
            if self.tokens[self.at - 1].text in ("[", "{", "<<", ":", ","):
                raise ValidationException(attribute_value.NESTING)
            raise ValidationException(TOO_MANY_OPERATORS)

    def leave(self) -> None:
        """Return from a deeper level."""
        self.depth -= 1

    def check_links(self, links: int) -> None:
        """Refuse a chain of too many operators, because each is nested in the next one's tree.

        Raises ``ValidationException`` if there are too many operators.
        """
        if links > DEPTH:
            raise ValidationException(TOO_MANY_OPERATORS)

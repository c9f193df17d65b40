"""A place in the tokens of a statement, and the steps that parsers take from there."""

from __future__ import annotations

from typing import Final

from model import attribute_value
from model.errors import ValidationException
from model.limits import EXPRESSION_OPERATORS
from model.partiql.tokens import Kind, Token, tokenize

# Of brackets and operators within one another: documents may have 32 levels, and each costs the
# parser a dozen calls.
DEPTH: Final = 40

TOO_MANY_OPERATORS: Final = (
    f"The expression contains too many operators; operator count: {EXPRESSION_OPERATORS + 1}"
)


class Cursor:
    """Takes one token after another; ``at`` is the place of the next one.

    ``parameters`` and ``operators`` count those that were taken, ``depth`` is how many
    expressions the present place is within.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self.parameters = 0
        self.operators = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        """The token that is looked at."""
        return self.tokens[self.at]

    def take(self) -> Token:
        """The token that is looked at, taken."""
        token = self.tokens[self.at]
        self.at += 1
        return token

    def fault(self) -> ValidationException:
        """The error for a text that the grammar does not know."""
        return ValidationException(f"Statement wasn't well formed, can't be processed: {self.text}")

    def is_symbol(self, symbol: str) -> bool:
        """Whether this symbol stands here."""
        token = self.tokens[self.at]
        return token.kind is Kind.SYMBOL and token.text == symbol

    def accept(self, symbol: str) -> bool:
        """Take this symbol if it is there."""
        found = self.is_symbol(symbol)
        self.at += found
        return found

    def expect(self, symbol: str) -> None:
        """Take this symbol, or fail."""
        if not self.accept(symbol):
            raise self.fault()

    def is_keyword(self, *keywords: str) -> bool:
        """Whether one of these keywords stands here."""
        token = self.tokens[self.at]
        return token.kind is Kind.KEYWORD and token.text in keywords

    def accept_keyword(self, keyword: str) -> bool:
        """Take this keyword if it is there."""
        found = self.is_keyword(keyword)
        self.at += found
        return found

    def expect_keyword(self, *keywords: str) -> str:
        """Take one of these keywords, or fail."""
        if not self.is_keyword(*keywords):
            raise self.fault()
        return self.take().text

    def accept_word(self, word: str) -> bool:
        """Take this word if it is there, which is a keyword in some places alone."""
        token = self.token
        found = token.kind is Kind.NAME and token.text.lower() == word
        self.at += found
        return found

    def enter(self) -> None:
        """Go one level deeper, if that is not too deep; ``leave`` goes back.

        Raises:
            ValidationException: it is too deep.
        """
        self.depth += 1
        if self.depth > DEPTH:
            if self.tokens[self.at - 1].text in ("[", "{", "<<", ":", ","):
                raise ValidationException(attribute_value.TOO_DEEP)
            raise ValidationException(TOO_MANY_OPERATORS)

    def leave(self) -> None:
        """Come back from a deeper level."""
        self.depth -= 1

    def check_links(self, links: int) -> None:
        """Bound the operators of a chain: each stands within the next.

        Raises:
            ValidationException: there are too many.
        """
        if links > DEPTH:
            raise ValidationException(TOO_MANY_OPERATORS)

"""The names of types in IS and CAST."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from dynactor.model.partiql import syntax
from dynactor.model.partiql.cursor import Cursor
from dynactor.model.partiql.syntax import Expression
from dynactor.model.partiql.tokens import Kind, Token, not_well_formed

# The types by their words in a statement: their names, and their number of parameters.
_TYPES: Final = {
    **{
        name: (name, 0)
        for name in (
            *("bag", "blob", "boolean", "clob", "date", "double_precision", "integer", "list"),
            *("missing", "null", "real", "sexp", "smallint", "string", "struct", "symbol"),
            *("timestamp", "tuple"),
        )
    },
    "bool": ("boolean", 0),
    "int": ("integer", 0),
    "char": ("character", 1),
    "character": ("character", 1),
    "character_varying": ("character_varying", 1),
    "varchar": ("character_varying", 1),
    "float": ("float", 1),
    "time": ("time", 1),
    "dec": ("decimal", 2),
    "decimal": ("decimal", 2),
    "numeric": ("numeric", 2),
}
# Types of two words.
_SECOND_WORDS: Final = {"character": "varying", "double": "precision"}
_PRECISION_MAX: Final = 9


class TypeNameParser(Cursor, ABC):
    """Parses names of types."""

    @abstractmethod
    def expressions(self) -> list[Expression]:
        """Expressions separated by commas."""

    def type_name(self) -> syntax.TypeName:
        """A type, possibly with parameters in parentheses.

        Raises:
            ValidationException: there is no type, or its parameters are wrong.
        """
        token = self.token
        word = token.text if token.kind is Kind.KEYWORD else ""
        second = _SECOND_WORDS.get(word)
        if second is not None and self.tokens[self.at + 1].text == second:
            word = f"{word}_{second}"
            self.take()
        if word not in _TYPES:
            raise not_well_formed("Expected type name")
        self.take()
        name, most_parameters = _TYPES[word]
        self._parameters(name, most_parameters)
        # The grammar accepts any keyword after TIME as WITH.
        if name == "time" and self.is_at_plain_keyword:
            self.with_time_zone()
            name = "time_with_time_zone"
        return syntax.TypeName(name, token)

    def with_time_zone(self) -> None:
        """``WITH TIME ZONE``."""
        for keyword in ("with", "time", "zone"):
            self.expect_keyword(keyword)

    def _parameters(self, name: str, most: int) -> None:
        if not self.accept("("):
            return
        parameters = self.expressions()
        self.expect(")")
        if len(parameters) > most:
            raise not_well_formed(f"CAST for {name} must have arity of 0..{most}")
        for parameter in parameters:
            if name == "time" and isinstance(parameter, syntax.Literal):
                check_precision(parameter.token)
            elif not _is_unsigned(parameter):
                raise not_well_formed("Type parameter must be an unsigned integer literal")


def check_precision(token: Token) -> None:
    """Refuse an invalid number of digits after a time's seconds.

    Raises:
        ValidationException: the token is not a whole number from 0 to 9.
    """
    if not (_is_whole(token) and int(token.text) <= _PRECISION_MAX):
        raise not_well_formed(
            f"Expected integer value between 0 and {_PRECISION_MAX} for precision"
        )


def _is_whole(token: Token) -> bool:
    return token.kind is Kind.NUMBER and token.text.isdigit()


def _is_unsigned(expression: Expression) -> bool:
    """Whether an expression is a whole number without a sign."""
    return isinstance(expression, syntax.Literal) and (
        _is_whole(expression.token) and expression.value["N"] == expression.token.text
    )

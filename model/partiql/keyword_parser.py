"""Operands with their own syntax: CASE, CAST, dates and times, some functions, VALUES.

DynamoDB supports none of them. Its message needs their first tokens only, and others are skipped.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from dynactor.model.partiql import syntax
from dynactor.model.partiql.operand_parser import OperandParser
from dynactor.model.partiql.syntax import Expression
from dynactor.model.partiql.tokens import StatementToken, StatementTokenKind, not_well_formed

_CONSTANT_KINDS: Final = {"true": "BOOL", "false": "BOOL", "null": "NULL", "missing": "NULL"}
_NO_ROW: Final = "Expected LEFT_PAREN for row value constructor"


class KeywordParser(OperandParser):
    """Parses operands that begin with a keyword."""

    @abstractmethod
    def statement_operand(self, token: StatementToken) -> Expression | None:
        """The statement after this consumed keyword; None if the keyword starts no statement."""

    def keyword_operand(self, token: StatementToken) -> Expression | None:
        """The operand after this consumed keyword; None if the keyword starts no operand."""
        match token.text:
            case "case":
                return self.case(token)
            case "cast":
                return syntax.Unsupported(
                    "Typed", "cast", self.brackets("Missing left parenthesis after CAST")
                )
            case "date" | "time":
                return self.date(token)
            case "values":
                row = syntax.Sequence((), self.brackets(_NO_ROW))
                while self.accept(","):
                    self.brackets(_NO_ROW)
                return syntax.Sequence((row,), token, is_bag=True)
            case "extract" | "date_add" | "date_diff":
                first = self.at + 1
                self.brackets()
                return syntax.CallNode(token.text, (syntax.Symbol(self.tokens[first]),), token)
            case "substring" | "trim":
                self.brackets()
                return syntax.CallNode(token.text, (), token)
        return self.statement_operand(token)

    def brackets(self, otherwise: str = "Expected LEFT_PAREN") -> StatementToken:
        """Skip a pair of parentheses and return the first; ``otherwise`` if there is none."""
        opening = self.token
        if not self.accept("("):
            raise not_well_formed(otherwise)
        self.skip()
        self.expect(")")
        return opening

    def case(self, token: StatementToken) -> Expression:
        """Skip a CASE up to its END."""
        kind, shown = "SearchedCase", "CASE"
        if not self.is_keyword("when"):
            kind, shown = "SimpleCase", f"CASE {self.token.text}"
        opened = 1
        while opened:
            if self.is_at_end:
                raise not_well_formed("Expected END keyword")
            opened += self.is_keyword("case") - self.is_keyword("end")
            self.take()
        return syntax.Unsupported(kind, shown, token)

    def date(self, token: StatementToken) -> Expression:
        """Parse the remaining tokens of a DATE or TIME."""
        words = "DATE"
        if token.text == "time":
            words = "TIME OR TIME WITH TIME ZONE"
            if self.is_symbol("("):
                self.brackets()
            self.accept_words("with", "time", "zone")
        text = self.token
        if text.kind is not StatementTokenKind.STRING:
            raise not_well_formed(
                f"Expected {token.text} string followed by the keyword {words}, found {_kind(text)}"
            )
        self.take()
        return syntax.Unsupported(token.text.title(), "UNKNOWN", text)


def _kind(token: StatementToken) -> str:
    """DynamoDB's name for a token that is not a string."""
    if token.kind is StatementTokenKind.NUMBER:
        return "INT" if token.text.isdigit() else "DECIMAL"
    return _CONSTANT_KINDS.get(token.text, "SYMBOL")

"""Operands with their own syntax: CASE, CAST, dates and times, some functions, VALUES.

DynamoDB supports none of them; its message depends on the kind.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Final

from dynactor.model.partiql import syntax
from dynactor.model.partiql.operand_parser import OperandParser
from dynactor.model.partiql.syntax import Expression
from dynactor.model.partiql.tokens import Kind, Token, not_well_formed
from dynactor.model.partiql.type_name_parser import check_precision

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_TIME: Final = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[+-][0-9]{2}:[0-9]{2})?\Z")
_TIME_FORM: Final = (
    'Invalid format for time string. Expected format is "TIME [(p)] [WITH TIME ZONE] '
    'HH:MM:SS[.ddddd...][+|-HH:MM]"'
)
_DATE_PARTS: Final = (
    *("year", "month", "day", "hour", "minute", "second", "timezone_hour", "timezone_minute"),
)
_TRIM_SIDES: Final = frozenset({"both", "leading", "trailing"})
_CONSTANT_KINDS: Final = {"true": "BOOL", "false": "BOOL", "null": "NULL", "missing": "NULL"}


class KeywordParser(OperandParser):
    """Parses operands that begin with a keyword."""

    @abstractmethod
    def statement_operand(self, token: Token) -> Expression | None:
        """The statement after this consumed keyword; None if the keyword starts no statement."""

    def keyword_operand(self, token: Token) -> Expression | None:
        """The operand after this consumed keyword; None if the keyword starts no operand."""
        match token.text:
            case "case":
                return self.case(token)
            case "cast":
                return self.cast()
            case "date":
                return self.date()
            case "time":
                return self.time()
            case "values":
                return self.rows(token)
            case "extract" | "date_add" | "date_diff":
                return self.date_function(token)
            case "substring":
                return self.substring(token)
            case "trim":
                return self.trim(token)
        return self.statement_operand(token)

    def case(self, token: Token) -> Expression:
        """Parse the remaining tokens of a CASE."""
        kind, shown = "SearchedCase", "CASE"
        if not self.is_keyword("when"):
            operand = self.expression()
            kind, shown = "SimpleCase", f"CASE {operand.token.text}"
            if not self.is_keyword("when"):
                raise not_well_formed("Expected a WHEN clause in CASE")
        while self.accept_keyword("when"):
            self.expression()
            self.expect_keyword("then")
            self.expression()
        if self.accept_keyword("else"):
            self.expression()
        self.expect_keyword("end")
        return syntax.Unsupported(kind, shown, token)

    def cast(self) -> Expression:
        """Parse the remaining tokens of a CAST."""
        token = self.token
        if not self.accept("("):
            raise not_well_formed("Missing left parenthesis after CAST")
        self.expression()
        self.expect_keyword("as", "Expected AS")
        self.type_name()
        self.expect(")")
        return syntax.Unsupported("Typed", "cast", token)

    def date(self) -> Expression:
        """Parse the remaining tokens of a DATE."""
        token = self.string_after("DATE")
        if not _DATE.match(token.text):
            raise not_well_formed("Expected DATE string to be of the format yyyy-MM-dd")
        return syntax.Unsupported("Date", "UNKNOWN", token)

    def time(self) -> Expression:
        """Parse the remaining tokens of a TIME."""
        if self.accept("("):
            check_precision(self.token)
            self.take()
            self.expect(")")
        if self.is_at_plain_keyword:
            self.with_time_zone()
        token = self.string_after("TIME OR TIME WITH TIME ZONE")
        if not _TIME.match(token.text):
            raise not_well_formed(_TIME_FORM)
        return syntax.Unsupported("Time", "UNKNOWN", token)

    def string_after(self, keyword: str) -> Token:
        """The string after the keywords of a date or time."""
        token = self.token
        if token.kind is not Kind.STRING:
            unit = keyword.partition(" ")[0].lower()
            raise not_well_formed(
                f"Expected {unit} string followed by the keyword {keyword}, found {_kind(token)}"
            )
        return self.take()

    def rows(self, token: Token) -> Expression:
        """Parse the remaining tokens of a VALUES: a bag of lists."""
        rows = [self.row()]
        while self.accept(","):
            rows.append(self.row())
        return syntax.Sequence(tuple(rows), token, is_bag=True)

    def row(self) -> Expression:
        """A list in parentheses."""
        token = self.token
        if not self.accept("("):
            raise not_well_formed("Expected LEFT_PAREN for row value constructor")
        elements = self.expressions()
        self.expect(")")
        return syntax.Sequence(tuple(elements), token)

    def date_function(self, token: Token) -> Expression:
        """Parse the remaining tokens of an EXTRACT, DATE_ADD or DATE_DIFF."""
        self.expect("(")
        part = self.token
        is_written_bare = part.kind is Kind.NAME and part.length == len(part.text)
        if not (is_written_bare and part.text.lower() in _DATE_PARTS):
            raise not_well_formed(f"Expected one of: [{', '.join(_DATE_PARTS)}]")
        self.take()
        arguments: list[Expression] = [syntax.Symbol(part)]
        if token.text == "extract":
            self.expect_keyword("from")
            arguments.append(self.expression())
        else:
            for _ in range(2):
                self.expect(",")
                arguments.append(self.expression())
        return self.closed_call(token, arguments)

    def substring(self, token: Token) -> Expression:
        """Parse the remaining tokens of a SUBSTRING."""
        self.expect("(")
        arguments = [self.expression()]
        if self.accept_keyword("from"):
            arguments.append(self.expression())
            if self.accept_keyword("for"):
                arguments.append(self.expression())
        else:
            if not self.accept(","):
                raise not_well_formed("Expected KEYWORD 'from' OR COMMA")
            arguments.append(self.expression())
            if self.accept(","):
                arguments.append(self.expression())
        return self.closed_call(token, arguments)

    def trim(self, token: Token) -> Expression:
        """Parse the remaining tokens of a TRIM."""
        self.expect("(")
        arguments: list[Expression] = []
        side = self.token
        if side.kind is Kind.NAME and side.text.lower() in _TRIM_SIDES:
            self.take()
            arguments.append(syntax.Symbol(side))
        if not self.accept_keyword("from"):
            arguments.append(self.expression())
            if len(arguments) == 1 and not self.is_keyword("from"):
                return self.closed_call(token, arguments)
            self.expect_keyword("from")
        arguments.append(self.expression())
        return self.closed_call(token, arguments)

    def closed_call(self, token: Token, arguments: list[Expression]) -> Expression:
        """A call, up to its closing parenthesis."""
        self.expect(")")
        self.operators += 1
        return syntax.Call(token.text, tuple(arguments), token)


def _kind(token: Token) -> str:
    """DynamoDB's name for a token that is not a string."""
    if token.kind is Kind.NUMBER:
        return "INT" if token.text.isdigit() else "DECIMAL"
    return _CONSTANT_KINDS.get(token.text, "SYMBOL")

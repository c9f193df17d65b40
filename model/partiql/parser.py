"""Parses a statement's text into its tree.

The grammar and its messages are those of the open source parser that DynamoDB uses,
partiql-lang-kotlin. ``tests/cases/statements/grammar.txt`` holds the answers of version 0.3.4.

The tree includes syntax that DynamoDB does not support, and ``dynactor.model.partiql.binding``
refuses it. Such syntax is parsed as far as its message needs. Its other tokens are skipped.

Depth is bounded, so a text of brackets can't exhaust the stack. The number of operators is bounded,
too, as in expressions.
"""

from __future__ import annotations

from typing import Final

from dynactor.model.errors import ValidationException
from dynactor.model.limits import EXPRESSION_OPERATORS
from dynactor.model.partiql import syntax
from dynactor.model.partiql.cursor import TOO_MANY_OPERATORS
from dynactor.model.partiql.syntax import Expression
from dynactor.model.partiql.tokens import StatementToken, not_well_formed
from dynactor.model.partiql.write_parser import WriteParser

EXISTS_OUTSIDE_TRANSACTION: Final = "EXISTS can only be used in ExecuteTransaction write requests."
# The names of nested writes in messages, by first keyword.
_NESTED_NAMES: Final = {"insert": "insert_into", "update": "null", "from": "null"}


def parse(text: str) -> tuple[syntax.Statement, int]:
    """The tree of a statement, and its number of parameters; raises ``ValidationException``."""
    parser = _StatementParser(text)
    return parser.statement(), parser.parameters


class _StatementParser(WriteParser):
    """Parses statements. ``top_level_words`` begin writes, allowed only as a whole statement."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.top_level_words: list[StatementToken] = []

    def statement(self) -> syntax.Statement:
        """The whole text, with an optional semicolon at its end; raises ``ValidationException``."""
        expression = self.expression()
        if self.accept(";"):
            self.expect_end("Unexpected token after semicolon. (Only one query is allowed.)")
        self.expect_end("Unexpected token after expression")
        self.check_not_nested(expression)
        if self.operators > EXPRESSION_OPERATORS:
            raise ValidationException(TOO_MANY_OPERATORS)
        return _statement(expression)

    def expect_end(self, otherwise: str) -> None:
        """Fail for the reason ``otherwise`` if the text continues."""
        if not self.is_at_end:
            raise not_well_formed(otherwise)

    def check_not_nested(self, expression: Expression) -> None:
        is_whole = isinstance(expression, syntax.Nested)
        for token in self.top_level_words:
            if not (is_whole and token is expression.token):
                name = _NESTED_NAMES.get(token.text, token.text)
                raise not_well_formed(f"Keyword {name} only expected at the top level in the query")

    def write_operand(self, token: StatementToken) -> Expression | None:
        """The write after this consumed keyword; None if the keyword starts no write."""
        if token.text in ("create", "drop", "exec"):
            created = "" if token.text == "exec" else self.token.text.title()
            raise unsupported(f"{token.text.title()}{created}")
        at = len(self.top_level_words)
        operand = super().write_operand(token)
        if operand is not None:
            # The word precedes the words nested within it.
            self.top_level_words.insert(at, token)
        return operand


def unsupported(kind: str) -> ValidationException:
    """The error for a statement of this kind."""
    return ValidationException(f"Unsupported operation: {kind}")


def _statement(expression: Expression) -> syntax.Statement:
    """The statement that a parsed expression represents; raises ``ValidationException``."""
    match expression:
        case syntax.Subquery(select):
            return select
        case syntax.Nested(write):
            return write
        case syntax.CallNode("exists", (syntax.Subquery(select),)):
            return syntax.ExistsNode(select)
    # DynamoDB treats any operator or function in place of a statement as EXISTS.
    kind = _kind(expression)
    if kind is None:
        raise ValidationException(EXISTS_OUTSIDE_TRANSACTION)
    raise unsupported(kind)


def _kind(expression: Expression) -> str | None:
    """DynamoDB's name for an expression that is no statement; None for an operator or function."""
    match expression:
        case syntax.Literal() | syntax.Ion() | syntax.Missing() | syntax.NegativeZero():
            return "Literal"
        case syntax.VariableNode():
            return "VariableReference"
        case syntax.Sequence():
            return "Seq"
        case syntax.Tuple():
            return "Struct"
        case syntax.OperationNode("is"):
            return "Typed"
        case syntax.CallNode() if expression.is_aggregate:
            return "CallAgg"
        case syntax.OperationNode() | syntax.CallNode():
            return None
        case syntax.Unsupported(kind):
            return kind
        case _:
            return type(expression).__name__

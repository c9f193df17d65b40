"""Operators of PartiQL expressions, from the loosest binding to the tightest."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Final

from dynactor.model.partiql import syntax
from dynactor.model.partiql.cursor import TokenCursor
from dynactor.model.partiql.syntax import Expression
from dynactor.model.partiql.tokens import StatementTokenKind, not_well_formed

# The precedence of operators.
_SET, _OR, _AND, _NEGATION, _EQUITY, _COMPARISON, _ADDITION, _MULTIPLICATION = range(8)
_TIGHTNESS: Final = {
    **dict.fromkeys(("union", "except", "intersect"), _SET),
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("=", "<>", "is", "in"), _EQUITY),
    **dict.fromkeys(("<", "<=", ">", ">=", "between", "like"), _COMPARISON),
    **dict.fromkeys(("+", "-", "||"), _ADDITION),
    **dict.fromkeys(("*", "/", "%"), _MULTIPLICATION),
}
# Operators that NOT may precede.
_NEGATED: Final = frozenset({"between", "in", "like"})
_ZERO_DECIMAL: Final = re.compile(r"(?=.*[.eE])[0.]+(?:[eE].*)?\Z")


# The types that IS may name, by their words in a statement.
_TYPE_NAMES: Final = {
    **{
        name: name
        for name in (
            *("bag", "blob", "boolean", "character", "clob", "date", "decimal", "double", "float"),
            *("integer", "list", "missing", "null", "numeric", "real", "sexp", "smallint"),
            *("string", "struct", "symbol", "time", "timestamp", "tuple"),
        )
    },
    "bool": "boolean",
    "int": "integer",
    "char": "character",
    "varchar": "character_varying",
    "dec": "decimal",
}


class ExpressionParser(TokenCursor, ABC):
    """Parses expressions. Each method consumes the syntax that its docstring names, or fails.

    Raises everywhere:
        ValidationException: the text does not fit the grammar, or is nested too deep.
    """

    @abstractmethod
    def operand(self) -> Expression:
        """An expression without operators, with the steps of its path."""

    def expressions(self) -> list[Expression]:
        """Expressions separated by commas."""
        expressions = [self.expression()]
        while self.accept(","):
            expressions.append(self.expression())
        return expressions

    def expression(self, loosest: int = _SET) -> Expression:
        """Any expression, with operators of at least this precedence."""
        self.enter()
        expression = self.operation(loosest)
        self.leave()
        return expression

    def clause(self) -> Expression:
        """The expression of a clause of SELECT; a UNION after it joins the whole SELECT."""
        return self.expression(_OR)

    def operation(self, loosest: int) -> Expression:
        """Operands joined by operators of at least this precedence."""
        expression = self.signed()
        links = 0
        while True:
            token = self.token
            negated = self.is_keyword("not") and self.tokens[self.at + 1].text in _NEGATED
            operator = self.tokens[self.at + negated]
            tightness = _tightness(operator.kind, operator.text)
            if tightness is None or tightness < loosest:
                return expression
            if operator.text in ("and", "or"):
                expression = self.joined(expression, operator.text)
                continue
            self.at += negated + 1
            self.operators += 1
            links += 1
            self.check_links(links)
            if operator.text == "is":
                negated = self.accept_keyword("not")
            operands = (expression, *self.right_operands(operator.text, tightness))
            expression = syntax.OperationNode(operator.text, operands, operator)
            if negated:
                expression = syntax.OperationNode("not", (expression,), token)

    def joined(self, first: Expression, operator: str) -> Expression:
        """Conditions joined by AND or OR; the first one is already consumed."""
        operands = [first]
        token = self.token
        while self.is_keyword(operator):
            token = self.take()
            self.operators += 1
            operands.append(self.right_operand(_TIGHTNESS[operator]))
        return syntax.OperationNode(operator, tuple(operands), token)

    def right_operands(self, operator: str, tightness: int) -> tuple[Expression, ...]:
        """The operands after an operator."""
        match operator:
            case "is":
                return (self.type_name(),)
            case "in" if self.is_symbol("(") and self.tokens[self.at + 1].text != "select":
                # After IN, one value in parentheses is a list. Elsewhere it is just that value.
                opening = self.take()
                choices = self.expressions()
                self.expect(")")
                return (syntax.Sequence(tuple(choices), opening),)
            case "between":
                lower = self.right_operand(tightness)
                self.expect_keyword("and")
                return (lower, self.right_operand(tightness, "Expected expression after AND"))
            case "like":
                pattern = self.right_operand(tightness)
                if not self.accept_keyword("escape"):
                    return (pattern,)
                return (pattern, self.right_operand(tightness, "Expected expression after ESCAPE"))
            case "union" | "except" | "intersect":
                self.accept_keyword("all")
        return (self.right_operand(tightness),)

    def type_name(self) -> syntax.TypeName:
        """The name of a type; DynamoDB supports none of those with several words or brackets."""
        token = self.token
        name = _TYPE_NAMES.get(token.text) if token.kind is StatementTokenKind.KEYWORD else None
        if name is None:
            raise not_well_formed("Expected type name")
        self.take()
        if self.is_keyword("varying", "precision"):
            name = f"{name}_{self.take().text}"
        if self.accept("("):
            self.skip()
            self.expect(")")
        if self.accept_words("with", "time", "zone"):
            name = "time_with_time_zone"
        return syntax.TypeName(name, token)

    def right_operand(
        self,
        tightness: int,
        otherwise: str = "Missing right-hand side expression of infix operator",
    ) -> Expression:
        """The operand after an operator; ``otherwise`` is the reason if the text ends."""
        if self.is_at_end:
            raise not_well_formed(otherwise)
        return self.operation(tightness + 1)

    def signed(self) -> Expression:
        """An operand, possibly with NOT or a sign before it; a number includes its sign."""
        token = self.token
        is_not = self.is_keyword("not")
        if not (is_not or self.is_symbol("-") or self.is_symbol("+")):
            return self.operand()
        self.take()
        self.operators += 1
        self.enter()
        operand = self.operation(_NEGATION) if is_not else self.signed()
        self.leave()
        if not is_not and isinstance(operand, syntax.Literal) and "N" in operand.value:
            text: str = operand.value["N"]
            if token.text == "+":
                return operand
            if _ZERO_DECIMAL.match(text):
                return syntax.NegativeZero(operand.token)
            negated = text[1:] if text[0] == "-" else f"-{text}"
            return syntax.Literal({"N": negated}, operand.token)
        return syntax.OperationNode(token.text, (operand,), token)


def _tightness(kind: StatementTokenKind, text: str) -> int | None:
    """The precedence of an operator; None if the token is not an operator."""
    return (
        _TIGHTNESS.get(text)
        if kind in (StatementTokenKind.SYMBOL, StatementTokenKind.KEYWORD)
        else None
    )

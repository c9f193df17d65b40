"""Operands of PartiQL expressions: values, names, paths, calls and brackets."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from dynactor.model.partiql import syntax
from dynactor.model.partiql.expression_parser import ExpressionParser
from dynactor.model.partiql.keywords import OPERATORS
from dynactor.model.partiql.syntax import Expression
from dynactor.model.partiql.tokens import StatementToken, StatementTokenKind, not_well_formed
from dynactor.model.values import attribute_value

# Keywords that are functions if a parenthesis follows.
_FUNCTIONS: Final = frozenset(
    {
        *("size", "exists", "char_length", "character_length", "coalesce", "lower", "upper"),
        *("nullif", "bag", "list", "sexp", "avg", "count", "max", "min", "sum"),
    }
)
_NO_TERMS: Final = frozenset({"as", "at", "by", "for", "asc", "desc"})
_OPERATOR_SYMBOLS: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "||", "/", "%"})
_CONSTANTS: Final[dict[str, attribute_value.AttributeValue]] = {
    "true": {"BOOL": True},
    "false": {"BOOL": False},
    "null": {"NULL": True},
}


class OperandParser(ExpressionParser):
    """Parses operands."""

    @abstractmethod
    def keyword_operand(self, token: StatementToken) -> Expression | None:
        """The operand after this consumed keyword; None if the keyword starts no operand."""

    def operand(self) -> Expression:
        """A value, name, call or bracket, with the steps of its path."""
        token = self.token
        return self.path(self.bare_operand(), token)

    def path(self, root: Expression, token: StatementToken) -> Expression:
        """Parse the steps of a path after its root; without steps, the result is the root."""
        steps: list[Expression] = []
        while True:
            if self.accept("."):
                steps.append(self.step())
            elif self.accept("["):
                star = self.token
                if self.accept("*"):
                    steps.append(syntax.Star(star, in_brackets=True))
                else:
                    steps.append(self.expression())
                self.expect("]")
            else:
                return syntax.Path(root, tuple(steps), token) if steps else root

    def step(self) -> Expression:
        """The step after a dot: ``*`` or a name; ``a.b`` has the same tree as ``a['b']``."""
        star = self.token
        if self.accept("*"):
            return syntax.Star(star)
        token = self.expect_name("Invalid path dot component")
        return syntax.Literal({"S": token.text}, token)

    def simple_path(self) -> Expression:
        """A path of names and literals, as allowed before ``=``."""
        token = self.expect_name("Expected identifier for simple path")
        steps: list[Expression] = []
        while True:
            if self.accept("."):
                if self.is_symbol("*"):
                    raise not_well_formed("Invalid path dot component for simple path")
                steps.append(self.step())
            elif self.accept("["):
                star = self.token
                step = syntax.Star(star) if self.accept("*") else self.expression()
                self.expect("]")
                atoms = syntax.Literal | syntax.VariableNode | syntax.Missing | syntax.Ion
                if not isinstance(step, atoms | syntax.NegativeZero):
                    raise not_well_formed("Invalid path component for simple path")
                steps.append(step)
            else:
                root = syntax.VariableNode(token.text, token)
                return syntax.Path(root, tuple(steps), token) if steps else root

    def bare_operand(self) -> Expression:
        """An operand without a path after it."""
        token = self.token
        match token.kind:
            case StatementTokenKind.END:
                raise not_well_formed("Unexpected term")
            case StatementTokenKind.KEYWORD:
                return self.keyword(token)
            case StatementTokenKind.SYMBOL:
                return self.bracketed(token)
        self.take()
        match token.kind:
            case StatementTokenKind.STRING:
                return syntax.Literal({"S": token.text}, token)
            case StatementTokenKind.NUMBER:
                return syntax.Literal({"N": token.text}, token)
            case StatementTokenKind.ION:
                return syntax.Ion(token)
            case _:
                return (
                    self.call(token) if self.accept("(") else syntax.VariableNode(token.text, token)
                )

    def keyword(self, token: StatementToken) -> Expression:
        """An operand that begins with a keyword."""
        word = token.text
        if word in OPERATORS:
            raise not_well_formed("Unexpected operator")
        if word in _NO_TERMS:
            raise not_well_formed("Unexpected term")
        self.take()
        if word in _CONSTANTS:
            return syntax.Literal(_CONSTANTS[word], token)
        if word == "missing":
            return syntax.Missing(token)
        if word in _FUNCTIONS and self.accept("("):
            return self.call(token)
        operand = self.keyword_operand(token)
        if operand is None:
            raise not_well_formed("Unexpected keyword")
        return operand

    def call(self, token: StatementToken) -> Expression:
        """The arguments of a function, after its parenthesis."""
        name = token.text
        arguments: list[Expression] = []
        if syntax.is_aggregate(token):
            # DynamoDB refuses it, whatever its arguments.
            self.skip()
        elif self.is_symbol("*"):
            raise not_well_formed(f"{name}(*) is not allowed")
        elif not self.is_symbol(")"):
            arguments = self.expressions()
        self.expect(")")
        self.operators += 1
        return syntax.CallNode(name, tuple(arguments), token)

    def bracketed(self, token: StatementToken) -> Expression:
        """A parameter, a list, a bag, a tuple, or an expression in parentheses."""
        if token.text in _OPERATOR_SYMBOLS:
            raise not_well_formed("Unexpected operator")
        self.take()
        match token.text:
            case "?":
                self.parameters += 1
                return syntax.Parameter(self.parameters - 1, token)
            case "@":
                name = self.expect_name("Identifier must follow @-operator")
                return syntax.VariableNode(name.text, name)
            case "(":
                elements = self.expressions()
                self.expect(")")
                if len(elements) == 1:
                    return elements[0]
                return syntax.Sequence(tuple(elements), token)
            case "[":
                return syntax.Sequence(self.elements("]"), token)
            case "<<":
                return syntax.Sequence(self.elements(">>"), token, is_bag=True)
            case "{":
                return self.members(token)
        raise not_well_formed("Unexpected term")

    def elements(self, closing: str) -> tuple[Expression, ...]:
        """Elements up to a closing bracket; there may be none."""
        if self.accept(closing):
            return ()
        elements = self.expressions()
        self.expect(closing)
        return tuple(elements)

    def members(self, token: StatementToken) -> Expression:
        """The members of a tuple, after its brace."""
        members = []
        if not self.accept("}"):
            while True:
                name = self.expression()
                self.expect(":")
                members.append((name, self.expression()))
                if not self.accept(","):
                    break
            self.expect("}")
        return syntax.Tuple(tuple(members), token)

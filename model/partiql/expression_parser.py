"""From tokens to expressions, of which SELECT is one, from the loosest binding to the tightest."""

from __future__ import annotations

import re
from typing import Final

from model import attribute_value
from model.partiql import syntax
from model.partiql.cursor import Cursor
from model.partiql.syntax import Expression
from model.partiql.tokens import Kind, Token

_COMPARATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_TIGHTNESS: Final = {"||": 0, "+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
# Keywords that are functions where a parenthesis follows.
_FUNCTION_KEYWORDS: Final = frozenset(
    {
        *("size", "exists", "avg", "count", "max", "min", "sum", "char_length"),
        *("character_length", "coalesce", "lower", "upper", "nullif", "trim"),
    }
)
# Types that IS may name by the grammar, MISSING and NULL apart.
_TYPE_KEYWORDS: Final = frozenset(
    {
        *("bag", "blob", "bool", "boolean", "clob", "date", "decimal", "float", "int", "integer"),
        *("list", "numeric", "real", "sexp", "smallint", "string", "struct", "symbol", "time"),
        *("timestamp", "tuple", "varchar", "char", "character"),
    }
)
_ZERO_DECIMAL: Final = re.compile(r"(?=.*[.eE])[0.]+(?:[eE].*)?\Z")
_CONSTANTS: Final[dict[str, attribute_value.AttributeValue]] = {
    "true": {"BOOL": True},
    "false": {"BOOL": False},
    "null": {"NULL": True},
}


class ExpressionParser(Cursor):
    """Parses expressions. Each method takes all of what its docstring names, or fails.

    Raises everywhere:
        ValidationException: the grammar does not know the text, or it is nested too deep.
    """

    def expressions(self) -> list[Expression]:
        """Expressions with commas between them."""
        expressions = [self.expression()]
        while self.accept(","):
            expressions.append(self.expression())
        return expressions

    def expression(self) -> Expression:
        """Any expression."""
        self.enter()
        expression = self.disjunction()
        self.leave()
        return expression

    def disjunction(self) -> Expression:
        """Conditions with OR between them, and with AND, which binds more tightly."""
        alternatives: list[Expression] = []
        divider = self.token
        while True:
            conjuncts = [self.negation()]
            joiner = self.token
            while self.is_keyword("and"):
                joiner = self.take()
                self.operators += 1
                conjuncts.append(self.negation())
            alternatives.append(
                conjuncts[0]
                if len(conjuncts) == 1
                else syntax.Operation("and", tuple(conjuncts), joiner)
            )
            if not self.is_keyword("or"):
                break
            divider = self.take()
            self.operators += 1
        if len(alternatives) == 1:
            return alternatives[0]
        return syntax.Operation("or", tuple(alternatives), divider)

    def negation(self) -> Expression:
        """A condition, perhaps with NOT before it."""
        if not self.is_keyword("not"):
            return self.condition()
        token = self.take()
        self.operators += 1
        self.enter()
        operand = self.negation()
        self.leave()
        return syntax.Operation("not", (operand,), token)

    def condition(self) -> Expression:
        """A comparison, or a value."""
        expression = self.arithmetic()
        links = 0
        while True:
            token = self.token
            if token.kind is Kind.SYMBOL and token.text in _COMPARATORS:
                self.take()
                operands = (expression, self.arithmetic())
                expression = syntax.Operation(token.text, operands, token)
            elif self.is_keyword("is"):
                expression = self.type_test(expression)
            else:
                negated = self.is_keyword("not") and self.tokens[self.at + 1].text in (
                    *("between", "in", "like"),
                )
                self.at += negated
                if not self.is_keyword("between", "in", "like"):
                    self.at -= negated
                    return expression
                expression = self.containment(expression)
                if negated:
                    expression = syntax.Operation("not", (expression,), token)
            self.operators += 1
            links += 1
            self.check_links(links)

    def type_test(self, operand: Expression) -> Expression:
        """``IS``, ``IS NOT``."""
        token = self.take()
        negated = self.accept_keyword("not")
        if not self.is_keyword("missing", "null", *_TYPE_KEYWORDS):
            raise self.fault()
        type_token = self.take()
        test = syntax.Operation(
            "is", (operand, syntax.TypeName(type_token.text, type_token)), token
        )
        return syntax.Operation("not", (test,), token) if negated else test

    def containment(self, operand: Expression) -> Expression:
        """``BETWEEN``, ``IN``, ``LIKE``."""
        token = self.take()
        if token.text == "between":
            lower = self.arithmetic()
            self.expect_keyword("and")
            return syntax.Operation("between", (operand, lower, self.arithmetic()), token)
        if token.text == "in" and self.is_symbol("("):
            # One value in parentheses is a list of one here, and a value elsewhere.
            opening = self.take()
            choices = self.expressions()
            self.expect(")")
            right: Expression = syntax.Sequence(tuple(choices), opening)
            if isinstance(choices[0], syntax.Subquery):
                right = choices[0]
        else:
            right = self.arithmetic()
        return syntax.Operation(token.text, (operand, right), token)

    def arithmetic(self, loosest: int = 0) -> Expression:
        """Operands with operators between them that bind at least so tightly."""
        expression = self.signed()
        links = 0
        while True:
            token = self.token
            tightness = _TIGHTNESS.get(token.text) if token.kind is Kind.SYMBOL else None
            if tightness is None or tightness < loosest:
                return expression
            self.take()
            self.operators += 1
            links += 1
            self.check_links(links)
            operands = (expression, self.arithmetic(tightness + 1))
            expression = syntax.Operation(token.text, operands, token)

    def signed(self) -> Expression:
        """An operand, perhaps with a sign, which is a number's own."""
        token = self.token
        if not (self.is_symbol("-") or self.is_symbol("+")):
            return self.operand()
        self.take()
        self.operators += 1
        self.enter()
        operand = self.signed()
        self.leave()
        if isinstance(operand, syntax.Literal) and "N" in operand.value:
            text: str = operand.value["N"]
            if token.text == "+":
                return operand
            if _ZERO_DECIMAL.match(text):
                return syntax.NegativeZero(operand.token)
            negated = text[1:] if text[0] == "-" else f"-{text}"
            return syntax.Literal({"N": negated}, operand.token)
        return syntax.Operation(token.text, (operand,), token)

    def operand(self) -> Expression:
        """A value, name, call or bracket, with the steps of a path behind it."""
        token = self.token
        root = self.bare_operand()
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
        """What follows a dot: a name is a step as a string in brackets is."""
        token = self.take()
        if token.kind is Kind.SYMBOL and token.text == "*":
            return syntax.Star(token)
        if token.kind is not Kind.NAME:
            raise self.fault()
        return syntax.Literal({"S": token.text}, token)

    def bare_operand(self) -> Expression:
        """An operand without a path behind it."""
        token = self.take()
        match token.kind:
            case Kind.STRING:
                return syntax.Literal({"S": token.text}, token)
            case Kind.NUMBER:
                return syntax.Literal({"N": token.text}, token)
            case Kind.ION:
                return syntax.Ion(token)
            case Kind.NAME:
                return self.call(token) if self.accept("(") else syntax.Variable(token.text, token)
            case Kind.KEYWORD:
                return self.keyword_operand(token)
            case Kind.SYMBOL:
                return self.bracketed(token)
        raise self.fault()

    def keyword_operand(self, token: Token) -> Expression:
        """An operand that begins with a keyword."""
        word = token.text
        if word in _CONSTANTS:
            return syntax.Literal(_CONSTANTS[word], token)
        if word == "missing":
            return syntax.Missing(token)
        if word == "select":
            self.enter()
            select = self.select()
            self.leave()
            return syntax.Subquery(select, token)
        if word in _FUNCTION_KEYWORDS and self.accept("("):
            return self.call(token)
        raise self.fault()

    def call(self, token: Token) -> Expression:
        """The arguments of a function, the parenthesis taken."""
        arguments: list[Expression] = []
        star = self.token
        if self.accept("*"):
            arguments.append(syntax.Star(star))
        elif not self.is_symbol(")"):
            arguments = self.expressions()
        self.expect(")")
        self.operators += 1
        return syntax.Call(token.text, tuple(arguments), token)

    def bracketed(self, token: Token) -> Expression:
        """A parameter, list, bag or tuple, an expression in parentheses."""
        match token.text:
            case "?":
                self.parameters += 1
                return syntax.Parameter(self.parameters - 1, token)
            case "@":
                name = self.take()
                if name.kind is not Kind.NAME:
                    raise self.fault()
                return syntax.Variable(name.text, name)
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
        raise self.fault()

    def elements(self, closing: str) -> tuple[Expression, ...]:
        """Elements up to a closing bracket; there may be none."""
        if self.accept(closing):
            return ()
        elements = self.expressions()
        self.expect(closing)
        return tuple(elements)

    def members(self, token: Token) -> Expression:
        """The members of a tuple, the brace taken."""
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

    def select(self) -> syntax.Select:
        """What follows SELECT."""
        unsupported = []
        if self.accept_keyword("distinct"):
            unsupported.append("Unsupported token in expression: DISTINCT")
        elif not self.accept_keyword("all") and self.is_keyword("value"):
            self.take()
            unsupported.append("Select projection doesn't support value or pivot keywords")
        columns: list[Expression] | None = None
        has_alias = False
        if not self.accept("*"):
            columns = [self.column()]
            has_alias = self.alias()
            while self.accept(","):
                columns.append(self.column())
                has_alias |= self.alias()
        self.expect_keyword("from")
        sources = self.sources()
        where = self.expression() if self.accept_keyword("where") else None
        order = self.order()
        if self.accept_keyword("group"):
            self.expect_keyword("by")
            self.expressions()
            unsupported.append("Unsupported clause: GROUP BY")
        for clause in ("having", "limit"):
            if self.accept_keyword(clause):
                token = self.expression().token
                unsupported.append(f"Unsupported clause: {clause.upper()}{token.at}")
        return syntax.Select(
            tuple(columns) if columns is not None else None,
            tuple(sources),
            where,
            tuple(order),
            has_alias,
            tuple(unsupported),
        )

    def column(self) -> Expression:
        """A column of a SELECT, in which ``.*`` stands at the end alone."""
        column = self.expression()
        if isinstance(column, syntax.Path) and any(
            isinstance(step, syntax.Star) and (step.in_brackets or step is not column.steps[-1])
            for step in column.steps
        ):
            raise self.fault()
        return column

    def sources(self) -> list[syntax.Source]:
        """What follows FROM in a SELECT."""
        sources = [self.source()]
        while True:
            if self.accept(","):
                sources.append(self.source())
                continue
            joined = False
            while self.is_keyword("inner", "left", "right", "full", "outer", "cross"):
                self.take()
                joined = True
            if not joined and not self.is_keyword("join"):
                return sources
            self.expect_keyword("join")
            sources.append(self.source())
            if self.accept_keyword("on"):
                self.expression()

    def source(self) -> syntax.Source:
        """One table or index, or what stands in its place."""
        self.accept("@")
        expression = self.expression()
        has_alias = False
        while self.alias() or self.positional_alias():
            has_alias = True
        return syntax.Source(expression, has_alias)

    def alias(self) -> bool:
        """Take another name for what stands before it."""
        if self.accept_keyword("as"):
            if self.take().kind is not Kind.NAME:
                raise self.fault()
            return True
        if self.token.kind is Kind.NAME:
            self.take()
            return True
        return False

    def positional_alias(self) -> bool:
        """Take the name of a position."""
        if not self.is_keyword("at", "by"):
            return False
        self.take()
        if self.take().kind is not Kind.NAME:
            raise self.fault()
        return True

    def order(self) -> list[syntax.SortTerm]:
        """An ORDER BY, if there is one."""
        if not self.accept_keyword("order"):
            return []
        self.expect_keyword("by")
        terms = []
        while True:
            expression = self.expression()
            descending = self.accept_keyword("desc")
            if not descending:
                self.accept_keyword("asc")
            terms.append(syntax.SortTerm(expression, descending))
            if not self.accept(","):
                return terms

"""From a statement's text to its tree.

Only what the grammar forbids is a fault here, and there is one message for it. What the grammar
allows and DynamoDB does not support is kept in the tree, where ``model.partiql.statement`` finds
it. A text of brackets must not exhaust the stack: depth is bounded, and so is the number of
operators, as in expressions.
"""

from __future__ import annotations

from typing import Final, NoReturn

from model import attribute_value, number
from model.errors import ValidationException
from model.limits import EXPRESSION_OPERATORS
from model.partiql import syntax
from model.partiql.syntax import Expression
from model.partiql.tokens import Kind, Token, tokenize

# Of brackets and operators within one another: documents may have 32 levels, and each costs a
# dozen calls here.
_DEPTH: Final = 40

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
# Statements of the language that DynamoDB does not have, and what it calls them.
_UNSUPPORTED_STATEMENTS: Final = {
    ("create", "table"): "CreateTable",
    ("create", "index"): "CreateIndex",
    ("drop", "table"): "DropTable",
    ("drop", "index"): "DropIndex",
}
_CONSTANTS: Final[dict[str, attribute_value.AttributeValue]] = {
    "true": {"BOOL": True},
    "false": {"BOOL": False},
    "null": {"NULL": True},
}
EXISTS_OUTSIDE_TRANSACTION: Final = "EXISTS can only be used in ExecuteTransaction write requests."
_TOO_MANY_OPERATORS: Final = (
    f"The expression contains too many operators; operator count: {EXPRESSION_OPERATORS + 1}"
)


def parse(text: str) -> tuple[syntax.Statement, int]:
    """The tree of a statement, and how many parameters it has.

    Raises:
        ValidationException: the text is no statement, or no statement of DynamoDB's.
    """
    parser = _Parser(text)
    return parser.statement(), parser.parameters


class _Parser:
    """Takes one token after another; ``at`` is the place of the next one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self.parameters = 0
        self.operators = 0
        self.depth = 0

    # Tokens.

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

    # Statements.

    def statement(self) -> syntax.Statement:
        """The whole text, perhaps with a semicolon behind it."""
        statement = self.bare_statement()
        self.accept(";")
        if self.token.kind is not Kind.END:
            raise self.fault()
        if self.operators > EXPRESSION_OPERATORS:
            raise ValidationException(_TOO_MANY_OPERATORS)
        return statement

    def bare_statement(self) -> syntax.Statement:
        """A statement of any kind."""
        if self.accept_keyword("insert"):
            return self.insert()
        if self.accept_keyword("update"):
            return self.update()
        if self.accept_keyword("delete"):
            return self.delete()
        if self.is_keyword("create", "drop"):
            self.unsupported_statement()
        # SELECT, perhaps in parentheses, and EXISTS are expressions by the grammar.
        expression = self.expression()
        if isinstance(expression, syntax.Subquery):
            return expression.select
        if isinstance(expression, syntax.Call) and expression.name == "exists":
            match expression.arguments:
                case (syntax.Subquery(select),):
                    return syntax.Exists(select)
        if self.token.kind is not Kind.END:
            raise self.fault()
        if isinstance(expression, syntax.Operation | syntax.Call):
            # DynamoDB takes any operator or function in the place of a statement for EXISTS.
            raise ValidationException(EXISTS_OUTSIDE_TRANSACTION)
        raise ValidationException(f"Unsupported operation: {_kind(expression)}")

    def unsupported_statement(self) -> NoReturn:
        """Refuse a statement that other databases have."""
        name = _UNSUPPORTED_STATEMENTS.get((self.take().text, self.take().text))
        if name is None:
            raise self.fault()
        raise ValidationException(f"Unsupported operation: {name}")

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
            columns = [self.expression()]
            has_alias = self.alias()
            while self.accept(","):
                columns.append(self.expression())
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
        expression = self.operand()
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

    def insert(self) -> syntax.Insert:
        """What follows INSERT."""
        self.expect_keyword("into")
        source = self.source_of_write()
        unsupported = []
        if not self.accept_keyword("value"):
            # The older form of the language, which takes many items.
            if self.accept_keyword("values") and not self.is_symbol("("):
                raise self.fault()
            unsupported.append("Unsupported operation: InsertOp")
        value = self.expression()
        if_not_exists = self.accept_word("if")
        if if_not_exists:
            self.expect_keyword("not")
            self.expect_keyword("exists")
        if self.accept_keyword("on"):
            for keyword in ("conflict", "where"):
                self.expect_keyword(keyword)
            self.expression()
            for keyword in ("do", "nothing"):
                self.expect_keyword(keyword)
            unsupported.append("Unsupported clause: ON CONFLICT")
        if self.returning():
            unsupported.append("RETURNING is not supported in INSERT")
        return syntax.Insert(source, value, if_not_exists, tuple(unsupported))

    def update(self) -> syntax.Update:
        """What follows UPDATE."""
        source = self.source_of_write()
        actions: list[syntax.Assignment | syntax.Removal] = []
        while True:
            if self.accept_keyword("set"):
                actions.append(self.assignment())
                while self.accept(","):
                    actions.append(self.assignment())
            elif self.accept_keyword("remove"):
                actions.append(syntax.Removal(self.document_path()))
            else:
                break
        if not actions:
            raise self.fault()
        where = self.expression() if self.accept_keyword("where") else None
        return syntax.Update(source, tuple(actions), where, self.returning())

    def assignment(self) -> syntax.Assignment:
        """A path and the value it is set to."""
        path = self.document_path()
        self.expect("=")
        return syntax.Assignment(path, self.expression())

    def delete(self) -> syntax.Delete:
        """What follows DELETE."""
        self.expect_keyword("from")
        source = self.source_of_write()
        where = self.expression() if self.accept_keyword("where") else None
        return syntax.Delete(source, where, self.returning())

    def source_of_write(self) -> syntax.Source:
        """The table of a write."""
        path = self.document_path()
        return syntax.Source(path, self.token.text.lower() != "if" and self.alias())

    def document_path(self) -> Expression:
        """A path of names and positions, as it may stand before ``=``."""
        if self.token.kind is not Kind.NAME:
            raise self.fault()
        path = self.operand()
        if isinstance(path, syntax.Path):
            if not all(isinstance(step, syntax.Literal) for step in path.steps):
                raise self.fault()
        elif not isinstance(path, syntax.Variable):
            raise self.fault()
        return path

    def returning(self) -> tuple[syntax.Returning, ...]:
        """A RETURNING, if there is one."""
        if not self.accept_keyword("returning"):
            return ()
        elements = []
        while True:
            extent = self.expect_keyword("all", "modified")
            image = self.expect_keyword("old", "new")
            has_star = self.accept("*")
            if not has_star:
                self.expression()
            elements.append(
                syntax.Returning(
                    "all" if extent == "all" else "modified",
                    "old" if image == "old" else "new",
                    has_star,
                )
            )
            if not self.accept(","):
                return tuple(elements)

    # Expressions, from the loosest binding to the tightest.

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
        self.depth -= 1
        return expression

    def enter(self) -> None:
        """Go one level deeper, if that is not too deep."""
        self.depth += 1
        if self.depth > _DEPTH:
            if self.tokens[self.at - 1].text in ("[", "{", "<<", ":", ","):
                raise ValidationException(attribute_value.TOO_DEEP)
            raise ValidationException(_TOO_MANY_OPERATORS)

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
        self.depth -= 1
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
            if links > _DEPTH:
                raise ValidationException(_TOO_MANY_OPERATORS)

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
            if links > _DEPTH:
                raise ValidationException(_TOO_MANY_OPERATORS)
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
        self.depth -= 1
        if isinstance(operand, syntax.Literal) and "N" in operand.value:
            text: str = operand.value["N"]
            if token.text == "-":
                if text == "0" and not operand.token.text.isdigit():
                    return syntax.NegativeZero(operand.token)
                text = number.canonical(text[1:] if text[0] == "-" else f"-{text}")
            return syntax.Literal({"N": text}, operand.token)
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
                return syntax.Literal({"N": number.canonical(token.text)}, token)
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
            self.depth -= 1
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


def _kind(expression: Expression) -> str:
    """What DynamoDB calls an expression that is no statement."""
    match expression:
        case syntax.Literal() | syntax.Ion() | syntax.Missing():
            return "Literal"
        case syntax.Variable():
            return "VariableReference"
        case syntax.Sequence():
            return "Seq"
        case syntax.Tuple():
            return "Struct"
        case _:
            return type(expression).__name__

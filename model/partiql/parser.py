"""From a statement's text to its tree.

Only what the grammar forbids is a fault here, and there is one message for it. What the grammar
allows and DynamoDB does not support is kept in the tree, where ``model.partiql.binding`` finds
it. A text of brackets must not exhaust the stack: depth is bounded, and so is the number of
operators, as in expressions.
"""

from __future__ import annotations

from typing import Final, NoReturn

from model.errors import ValidationException
from model.limits import EXPRESSION_OPERATORS
from model.partiql import syntax
from model.partiql.cursor import TOO_MANY_OPERATORS
from model.partiql.expression_parser import ExpressionParser
from model.partiql.syntax import Expression
from model.partiql.tokens import Kind

# Statements of the language that DynamoDB does not have, and what it calls them.
_UNSUPPORTED_STATEMENTS: Final = {
    ("create", "table"): "CreateTable",
    ("create", "index"): "CreateIndex",
    ("drop", "table"): "DropTable",
    ("drop", "index"): "DropIndex",
}
EXISTS_OUTSIDE_TRANSACTION: Final = "EXISTS can only be used in ExecuteTransaction write requests."


def parse(text: str) -> tuple[syntax.Statement, int]:
    """The tree of a statement, and how many parameters it has.

    Raises:
        ValidationException: the text is no statement, or no statement of DynamoDB's.
    """
    parser = _Parser(text)
    return parser.statement(), parser.parameters


class _Parser(ExpressionParser):
    """Parses statements."""

    def statement(self) -> syntax.Statement:
        """The whole text, perhaps with a semicolon behind it."""
        statement = self.bare_statement()
        self.accept(";")
        if self.token.kind is not Kind.END:
            raise self.fault()
        if self.operators > EXPRESSION_OPERATORS:
            raise ValidationException(TOO_MANY_OPERATORS)
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
            if not all(isinstance(step, syntax.Literal | syntax.Variable) for step in path.steps):
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

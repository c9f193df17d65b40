"""INSERT, UPDATE, DELETE, and the older ``FROM table WHERE … SET …``."""

from __future__ import annotations

from typing import Final, get_args

from msgspec import structs

from dynactor.model.partiql import syntax
from dynactor.model.partiql.select_parser import SelectParser
from dynactor.model.partiql.syntax import Expression
from dynactor.model.partiql.tokens import StatementToken, not_well_formed

_RETURNED: Final = tuple(
    (extent, image) for extent in get_args(syntax.Extent) for image in get_args(syntax.Image)
)


class WriteParser(SelectParser):
    """Parses statements that write."""

    def write_operand(self, token: StatementToken) -> Expression | None:
        """The write after this consumed keyword; None if the keyword starts no write."""
        write: syntax.InsertNode | syntax.UpdateNode | syntax.DeleteNode
        match token.text:
            case "insert" if self.accept_keyword("into"):
                write = self.insert(token)
            case "update":
                write = self.update(token)
            case "delete":
                write = self.delete()
            case "from":
                write = self.update_from(token)
            case "set" | "remove":
                # The grammar has these as statements of their own, too.
                self.at -= 1
                write = self.operations((), token)
            case _:
                return None
        return syntax.Nested(write, token)

    def insert(self, token: StatementToken) -> syntax.InsertNode:
        """Parse the remaining tokens of an INSERT INTO; the current token is INSERT."""
        table = self.simple_path()
        unsupported = []
        if not self.accept_keyword("value"):
            # PartiQL's older INSERT, without VALUE, inserts several items.
            items = self.expression()
            return syntax.InsertNode(table, items, unsupported=("Unsupported operation: InsertOp",))
        value = self.expression()
        if self.accept_keyword("at"):
            self.skip()
            unsupported.append(f"AT is not supported in insert statements.{token.at}")
        if_not_exists = self.accept_words("if", "not", "exists")
        if self.accept_words("on", "conflict"):
            self.skip()
            unsupported.append("Unsupported clause: ON CONFLICT")
        if self.returning():
            unsupported.append("RETURNING is not supported in INSERT")
        return syntax.InsertNode(table, value, if_not_exists, tuple(unsupported))

    def update(self, token: StatementToken) -> syntax.UpdateNode:
        """Parse the remaining tokens of an UPDATE."""
        source = syntax.Source(self.simple_path(), self.aliases())
        update = self.operations((source,), token)
        where = self.expression() if self.accept_keyword("where") else None
        return self.returned(update, where)

    def update_from(self, token: StatementToken) -> syntax.UpdateNode:
        """Parse the remaining tokens of a statement that begins with FROM."""
        sources = self.sources(self.expression)
        if len(sources) > 1:
            return syntax.UpdateNode(tuple(sources), ())
        where = self.expression() if self.accept_keyword("where") else None
        return self.returned(self.operations(tuple(sources), token), where)

    def returned(self, update: syntax.UpdateNode, where: Expression | None) -> syntax.UpdateNode:
        """An update with its condition and RETURNING."""
        return syntax.UpdateNode(
            update.sources, update.actions, where, self.returning(), update.unsupported
        )

    def operations(
        self, sources: tuple[syntax.Source, ...], token: StatementToken
    ) -> syntax.UpdateNode:
        """Consecutive SET and REMOVE operations."""
        actions: list[syntax.Assignment | syntax.Removal] = []
        unsupported: str | None = None
        while True:
            if self.accept_keyword("set"):
                actions.append(self.assignment())
                while self.accept(","):
                    actions.append(self.assignment())
            elif self.accept_keyword("remove"):
                actions.append(syntax.Removal(self.simple_path()))
            elif self.accept_words("insert", "into"):
                self.insert(token)
                unsupported = unsupported or _unsupported_insert(token, is_first=not actions)
            else:
                break
        if not actions and unsupported is None:
            raise not_well_formed("Expected data manipulation")
        return syntax.UpdateNode(sources, tuple(actions), unsupported=unsupported)

    def assignment(self) -> syntax.Assignment:
        """A path and the value it is set to."""
        path = self.simple_path()
        if not self.accept("="):
            raise not_well_formed("Expected '='")
        return syntax.Assignment(path, self.expression())

    def delete(self) -> syntax.DeleteNode:
        """Parse the remaining tokens of a DELETE."""
        self.expect_keyword("from", "Expected FROM after DELETE")
        source = syntax.Source(self.simple_path(), self.aliases())
        where = self.expression() if self.accept_keyword("where") else None
        return syntax.DeleteNode(source, where, self.returning())

    def returning(self) -> tuple[syntax.Returning, ...]:
        """Parse a RETURNING, if there is one."""
        if not self.accept_keyword("returning"):
            return ()
        elements = []
        while True:
            element = self.returned_image()
            if not self.accept("*"):
                self.expression()
                element = structs.replace(element, has_star=False)
            elements.append(element)
            if not self.accept(","):
                return tuple(elements)

    def returned_image(self) -> syntax.Returning:
        """The first part of an element of RETURNING: ``ALL OLD`` and similar."""
        for extent, image in _RETURNED:
            if self.accept_words(extent, image):
                return syntax.Returning(extent, image)
        raise not_well_formed(
            "Expected ( MODIFIED | ALL ) ( NEW | OLD ) in each returning element."
        )


def _unsupported_insert(token: StatementToken, *, is_first: bool) -> str:
    """The message for an INSERT after FROM or UPDATE."""
    if is_first:
        return f"Unsupported FROM ... WHERE ... clause in INSERT statement.{token.at}"
    return "Only SET and REMOVE are supported in update expressions at this time"

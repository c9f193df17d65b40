"""SELECT and PIVOT, with their clauses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from dynactor.model.partiql import syntax
from dynactor.model.partiql.keyword_parser import KeywordParser
from dynactor.model.partiql.syntax import Expression
from dynactor.model.partiql.tokens import StatementToken, StatementTokenKind, not_well_formed

_NO_PROJECTION: Final = "Select projection doesn't support value or pivot keywords"
_JOINS: Final = ("join", "inner", "outer", "left", "right", "full", "cross")


class SelectParser(KeywordParser):
    """Parses SELECT."""

    @abstractmethod
    def write_operand(self, token: StatementToken) -> Expression | None:
        """The write after this consumed keyword; None if the keyword starts no write."""

    def statement_operand(self, token: StatementToken) -> Expression | None:
        """The statement after this consumed keyword; None if the keyword starts no statement."""
        if token.text not in ("select", "pivot"):
            return self.write_operand(token)
        self.enter()
        if token.text == "select":
            select = self.select()
        else:
            self.skip()
            select = syntax.SelectNode((), (), unsupported=(_NO_PROJECTION,))
        self.leave()
        return syntax.Subquery(select, token)

    def select(self) -> syntax.SelectNode:
        """Parse the remaining tokens of a SELECT."""
        unsupported = []
        if self.accept_keyword("distinct"):
            unsupported.append("Unsupported token in expression: DISTINCT")
        else:
            self.accept_keyword("all")
        columns: list[Expression] = []
        has_alias = False
        if self.accept_keyword("value"):
            columns.append(self.expression())
            unsupported.append(_NO_PROJECTION)
        else:
            has_alias = self.columns(columns)
        return self.clauses(columns, has_alias=has_alias, unsupported=unsupported)

    def columns(self, columns: list[Expression]) -> bool:
        """Append the parsed columns to the list; return whether one has an alias.

        ``SELECT *`` is the list of one Star.
        """
        has_alias = False
        while True:
            star = self.token
            if self.accept("*"):
                columns.append(syntax.Star(star))
            else:
                columns.append(self.column())
                has_alias |= self.alias()
            if not self.accept(","):
                break
        if len(columns) > 1 and any(isinstance(column, syntax.Star) for column in columns):
            raise not_well_formed(
                "Other expressions may not be present in the select list when '*' is used "
                "without dot notation."
            )
        return has_alias

    def column(self) -> Expression:
        """A column of a SELECT, which may end with ``.*``."""
        column = self.expression()
        if isinstance(column, syntax.Path):
            *inner, last = column.steps
            stars = [step for step in column.steps if isinstance(step, syntax.Star)]
            if any(star.in_brackets or star is not last for star in stars):
                raise not_well_formed("Invalid use of * in select list")
            if stars and any(step.token.kind is not StatementTokenKind.NAME for step in inner):
                raise not_well_formed("Cannot use [] and * together in SELECT list expression")
        return column

    def clauses(
        self, columns: list[Expression], *, has_alias: bool, unsupported: list[str]
    ) -> syntax.SelectNode:
        """The clauses after the columns of a SELECT, FROM first."""
        self.expect_keyword("from", "Expected FROM after SELECT list")
        sources = self.sources(self.clause)
        self.unsupported_clause("let", unsupported)
        where = self.clause() if self.accept_keyword("where") else None
        order = self.order()
        for word in ("group", "having", "limit"):
            self.unsupported_clause(word, unsupported)
        return syntax.SelectNode(
            None if columns and isinstance(columns[0], syntax.Star) else tuple(columns),
            tuple(sources),
            where,
            tuple(order),
            has_alias,
            tuple(unsupported),
        )

    def unsupported_clause(self, word: str, unsupported: list[str]) -> None:
        """Skip a clause that DynamoDB does not have, and everything after it."""
        if self.accept_keyword(word):
            name = "GROUP BY" if word == "group" else word.upper()
            place = self.token.at if word in ("having", "limit") else ""
            unsupported.append(f"Unsupported clause: {name}{place}")
            self.skip()

    def sources(self, operand: Callable[[], Expression]) -> list[syntax.Source]:
        """A table, parsed by ``operand``. Further tables are skipped: DynamoDB reads one."""
        sources = [self.source(operand)]
        if self.accept(",") or self.is_keyword(*_JOINS):
            self.skip()
            sources *= 2
        return sources

    def source(self, operand: Callable[[], Expression]) -> syntax.Source:
        """Parse one table or index, or another expression in its place."""
        unpivots = self.accept_keyword("unpivot")
        return syntax.Source(operand(), self.aliases(), unpivots)

    def aliases(self) -> bool:
        """Parse the aliases of a source, at most one of each kind; return whether there is any."""
        found = self.alias()
        for keyword in ("at", "by"):
            if self.accept_keyword(keyword):
                self.expect_name(f"Expected identifier for {keyword.upper()}-alias")
                found = True
        return found

    def alias(self) -> bool:
        """Parse an alias of the preceding expression; return whether there is one."""
        if self.accept_keyword("as"):
            self.expect_name("Expected identifier for AS-alias")
            return True
        if self.token.kind is StatementTokenKind.NAME:
            self.take()
            return True
        return False

    def order(self) -> list[syntax.SortTerm]:
        """Parse an ORDER BY, if there is one."""
        if not self.accept_keyword("order"):
            return []
        self.expect_keyword("by", "Expected BY")
        terms = []
        while True:
            expression = self.expression()
            descending = self.accept_keyword("desc")
            if not descending:
                self.accept_keyword("asc")
            terms.append(syntax.SortTerm(expression, descending))
            if not self.accept(","):
                return terms

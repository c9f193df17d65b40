"""SELECT and PIVOT, with their clauses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from dynactor.model.partiql import syntax
from dynactor.model.partiql.keyword_parser import KeywordParser
from dynactor.model.partiql.syntax import Expression
from dynactor.model.partiql.tokens import Kind, Token, not_well_formed

_NO_PROJECTION: Final = "Select projection doesn't support value or pivot keywords"
# Words allowed before JOIN.
_JOINS: Final = frozenset(
    (*side, *cross)
    for side in (
        (),
        *(("inner",), ("outer",), ("left",), ("right",), ("full",)),
        *(("left", "outer"), ("right", "outer"), ("full", "outer")),
    )
    for cross in ((), ("cross",))
)


class SelectParser(KeywordParser):
    """Parses SELECT."""

    @abstractmethod
    def write_operand(self, token: Token) -> Expression | None:
        """The write after this consumed keyword; None if the keyword starts no write."""

    def statement_operand(self, token: Token) -> Expression | None:
        """The statement after this consumed keyword; None if the keyword starts no statement."""
        if token.text not in ("select", "pivot"):
            return self.write_operand(token)
        self.enter()
        select = self.select() if token.text == "select" else self.pivot()
        self.leave()
        return syntax.Subquery(select, token)

    def select(self) -> syntax.Select:
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

    def pivot(self) -> syntax.Select:
        """Parse the remaining tokens of a PIVOT."""
        self.expression()
        self.expect_keyword("at")
        self.expression()
        return self.clauses([], has_alias=False, unsupported=[_NO_PROJECTION])

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
            if stars and any(step.token.kind is not Kind.NAME for step in inner):
                raise not_well_formed("Cannot use [] and * together in SELECT list expression")
        return column

    def clauses(
        self, columns: list[Expression], *, has_alias: bool, unsupported: list[str]
    ) -> syntax.Select:
        """The clauses after the columns of a SELECT, FROM first."""
        self.expect_keyword("from", "Expected FROM after SELECT list")
        sources = self.sources(self.clause)
        if self.accept_keyword("let"):
            self.let()
            unsupported.append("Unsupported clause: LET")
        where = self.clause() if self.accept_keyword("where") else None
        order = self.order()
        if self.accept_keyword("group"):
            self.group()
            unsupported.append("Unsupported clause: GROUP BY")
        for clause in ("having", "limit"):
            if self.accept_keyword(clause):
                token = self.clause().token
                unsupported.append(f"Unsupported clause: {clause.upper()}{token.at}")
        return syntax.Select(
            None if columns and isinstance(columns[0], syntax.Star) else tuple(columns),
            tuple(sources),
            where,
            tuple(order),
            has_alias,
            tuple(unsupported),
        )

    def let(self) -> None:
        """Parse the remaining tokens of a LET."""
        while True:
            self.clause()
            self.expect_keyword("as", "Expected AS following LET expr")
            self.expect_name("Expected identifier for AS-alias")
            if not self.accept(","):
                return

    def group(self) -> None:
        """Parse the remaining tokens of a GROUP."""
        if self.token.text.lower() == "partial":
            self.take()
        self.expect_keyword("by", "Expected BY")
        while True:
            key = self.clause()
            if isinstance(key, syntax.Literal) and not key.value.keys() & {"BOOL", "NULL"}:
                raise not_well_formed("Literals (including ordinals) not supported in GROUP BY")
            self.alias()
            if not self.accept(","):
                break
        if self.accept_keyword("group"):
            self.expect_keyword("as")
            self.expect_name("Expected identifier for GROUP name")

    def sources(self, operand: Callable[[], Expression]) -> list[syntax.Source]:
        """Tables separated by commas and JOIN; ``operand`` parses the name of one."""
        sources = [self.source(operand)]
        while True:
            if self.accept(","):
                sources.append(self.source(operand))
                continue
            words = self.join_words()
            if not words:
                return sources
            self.at += len(words)
            sources += self.joined_sources(operand)
            if "cross" not in words:
                self.expect_keyword("on", "Expected 'ON'")
                operand()

    def join_words(self) -> tuple[str, ...]:
        """The words of the next JOIN; empty if there is none."""
        words: list[str] = []
        for token in self.tokens[self.at :]:
            if token.kind is not Kind.KEYWORD:
                break
            words.append(token.text)
            if token.text == "join":
                return tuple(words) if tuple(words[:-1]) in _JOINS else ()
        return ()

    def joined_sources(self, operand: Callable[[], Expression]) -> list[syntax.Source]:
        """The tables after JOIN: one, or several in parentheses."""
        if not self.is_symbol("(") or self.tokens[self.at + 1].text == "select":
            return [self.source(operand)]
        self.take()
        self.enter()
        sources = self.sources(operand)
        self.leave()
        self.expect(")")
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
        if self.token.kind is Kind.NAME:
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


def _is_unpivoted(column: Expression) -> bool:
    """Whether a column ends with ``.*``."""
    return isinstance(column, syntax.Path) and isinstance(column.steps[-1], syntax.Star)

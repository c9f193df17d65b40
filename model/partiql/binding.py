"""Turns a statement's text and parameters into an executable statement.

The part that depends only on the text is cached by text, as for expressions.

Source of the messages: DynamoDB Local 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct

from dynactor.model.errors import ValidationException
from dynactor.model.expressions import syntax as expressions
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.condition_binding import bind_condition
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update import bind_update
from dynactor.model.limits import DOCUMENT_PATH_DEPTH, TABLE_NAME_CHARACTERS
from dynactor.model.partiql import literals, syntax
from dynactor.model.partiql.key_terms import NO_KEY
from dynactor.model.partiql.parser import parse
from dynactor.model.partiql.statement import (
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    OrderTerm,
    Selection,
    SelectStatement,
    Statement,
    UpdateStatement,
)
from dynactor.model.partiql.trees import TreeBuilder, expression_path, parameter_name
from dynactor.model.values import attribute_value, document_path
from dynactor.model.values.attribute_value import SET_TYPES, AttributeValue
from dynactor.model.values.document_path import Path
from dynactor.model.writes.write import ReturnValues

_FEWEST, _MOST = TABLE_NAME_CHARACTERS
_TABLE_NAME: Final = re.compile(rf"[a-zA-Z0-9_.-]{{{_FEWEST},{_MOST}}}\Z")
_NAMES_IN_SOURCE: Final = 2
# Applications that write values into their statements have many texts that never recur.
_CACHED_TEXTS: Final = 512
_CACHED_CHARACTERS: Final = 2048


def prepare(text: str) -> PreparedStatement:
    """A statement without its parameters; raises ``ValidationException``."""
    return _cached(text) if len(text) <= _CACHED_CHARACTERS else _prepared(text)


def check_parameters(parameters: Sequence[AttributeValue]) -> None:
    """Check parameters, and make them canonical in place; raises as ``attribute_value.check``."""
    for value in parameters:
        attribute_value.check(value)


def is_read(text: str) -> bool | None:
    """Whether a text is a SELECT rather than a write, even if it is faulty.

    None for an EXISTS, and for a text that is not a statement.
    """
    try:
        tree, _ = parse(text)
    except ValidationException:
        return None
    return None if isinstance(tree, syntax.ExistsNode) else isinstance(tree, syntax.SelectNode)


class _Values(Placeholders):
    """The literals and parameters of a statement; names are used as written."""

    __slots__ = ()

    def __init__(self, values: dict[str, AttributeValue]) -> None:
        super().__init__(None, None)
        self._values = values

    def path(self, path: expressions.ParsedPath) -> Path:
        """The path itself; raises ``ValidationException`` if the path is too deep."""
        parts = path.parts
        if len(parts) > DOCUMENT_PATH_DEPTH:
            raise ValidationException(
                f"The document path has too many nesting levels; nesting levels: {len(parts)}"
            )
        if len(parts) > 1:
            self.nested.add(str(parts[0]))
        return parts

    def distinct_paths(self, paths: Sequence[expressions.ParsedPath]) -> list[Path]:
        """The paths, checked in their order; raises as ``path`` and ``document_path.distinct``."""
        return document_path.distinct(map(self.path, paths))

    def where(self, tree: expressions.Condition | None) -> Condition | None:
        return None if tree is None else bind_condition(tree, self)


class _SelectTrees(Struct, frozen=True):
    """A SELECT without its parameters; ``columns`` by their names in the result."""

    table: str
    index: str | None
    columns: tuple[tuple[str, expressions.ParsedPath], ...] | None
    where: expressions.Condition | None
    order: tuple[OrderTerm, ...]

    def bound(self, values: _Values) -> SelectStatement:
        selection = None
        if self.columns is not None:
            paths = values.distinct_paths([path for _, path in self.columns])
            names = [name for name, _ in self.columns]
            selection = Selection(
                document_path.branches(paths), tuple(zip(names, paths, strict=True))
            )
        where = values.where(self.where)
        return SelectStatement(
            self.table, self.index, selection, where, self.order, frozenset(values.nested)
        )


class _InsertTrees(Struct, frozen=True):
    table: str
    members: tuple[tuple[str, expressions.Value], ...]
    if_not_exists: bool

    def bound(self, values: _Values) -> InsertStatement:
        item = {name: values.value(value) for name, value in self.members}
        return InsertStatement(self.table, item, self.if_not_exists)


class _UpdateTrees(Struct, frozen=True):
    table: str
    names_index: bool
    clauses: tuple[expressions.Clause, ...]
    where: expressions.Condition | None
    return_values: ReturnValues

    def bound(self, values: _Values) -> UpdateStatement:
        where = values.where(self.where)
        update = bind_update(self.clauses, values)
        _check_no_index(names_index=self.names_index)
        if where is None:
            raise ValidationException(NO_KEY)
        return UpdateStatement(
            self.table, update, where, self.return_values, frozenset(values.nested)
        )


class _DeleteTrees(Struct, frozen=True):
    table: str
    names_index: bool
    where: expressions.Condition
    returning: str | None

    def bound(self, values: _Values) -> DeleteStatement:
        where = bind_condition(self.where, values)
        _check_no_index(names_index=self.names_index)
        return DeleteStatement(self.table, where, self.returning, frozenset(values.nested))


def _check_no_index(*, names_index: bool) -> None:
    if names_index:
        raise ValidationException("This operation is not supported on an index")


class _ExistsTrees(Struct, frozen=True):
    select: _SelectTrees

    def bound(self, values: _Values) -> ExistsStatement:
        return ExistsStatement(self.select.bound(values))


_Trees: TypeAlias = _SelectTrees | _InsertTrees | _UpdateTrees | _DeleteTrees | _ExistsTrees


class PreparedStatement(Struct, frozen=True):
    """The part of a statement that depends only on its text.

    ``index`` are the names of the table and the index that a SELECT reads, if it reads an index.
    ``operation`` is a message if the text has a fault that is reported after faults of the index.
    """

    operation: _Trees | str
    literals: dict[str, AttributeValue]
    parameters: int
    # The parameters that must be sets, each with the message for other types.
    sets: tuple[tuple[str, str], ...]
    index: tuple[str, str] | None = None

    @property
    def table(self) -> str | None:
        """The name of the table, if it is known in spite of a fault."""
        match self.operation:
            case str():
                return None if self.index is None else self.index[0]
            case _ExistsTrees(select):
                return select.table
        return self.operation.table

    def bound(self, parameters: Sequence[AttributeValue]) -> Statement:
        """The statement with its parameters, which are checked; raises ``ValidationException``."""
        if isinstance(self.operation, str):
            raise ValidationException(self.operation)
        # Further parameters, without a question mark in the text, are ignored.
        if len(parameters) < self.parameters:
            raise ValidationException("Number of parameters in request and statement don't match.")
        values = dict(self.literals)
        for position in range(self.parameters):
            values[parameter_name(position)] = parameters[position]
        for name, message in self.sets:
            if attribute_value.data_type(values[name]) not in SET_TYPES:
                raise ValidationException(message)
        return self.operation.bound(_Values(values))


@lru_cache(maxsize=_CACHED_TEXTS)
def _cached(text: str) -> PreparedStatement:
    return _prepared(text)


def _prepared(text: str) -> PreparedStatement:
    tree, parameters = parse(text)
    builder = TreeBuilder()
    index = _index(tree)
    operation: _Trees | str
    try:
        operation = _trees(tree, builder)
    except ValidationException as error:
        if index is None:
            raise
        operation = error.message
    return PreparedStatement(
        operation, builder.values, parameters, tuple(builder.sets.items()), index
    )


def _index(tree: syntax.Statement) -> tuple[str, str] | None:
    """The names of the table and the index that a SELECT reads, if it reads an index."""
    if not isinstance(tree, syntax.SelectNode):
        return None
    try:
        table, *index = _source_names(_only_source(tree.sources).expression)
    except ValidationException:
        # The same fault is reported when the statement is bound.
        return None
    return (table, index[0]) if index else None


def _trees(tree: syntax.Statement, builder: TreeBuilder) -> _Trees:
    match tree:
        case syntax.SelectNode():
            return _select(tree, builder)
        case syntax.InsertNode():
            return _insert(tree, builder)
        case syntax.UpdateNode():
            return _update(tree, builder)
        case syntax.DeleteNode():
            return _delete(tree, builder)
        case syntax.ExistsNode():
            return _ExistsTrees(_select(tree.select, builder))


def _where(
    expression: syntax.Expression | None, builder: TreeBuilder
) -> expressions.Condition | None:
    return None if expression is None else builder.condition(expression)


def _select(tree: syntax.SelectNode, builder: TreeBuilder) -> _SelectTrees:
    if tree.unsupported:
        raise ValidationException(tree.unsupported[0])
    source = _only_source(tree.sources)
    if tree.has_alias or source.has_alias:
        raise ValidationException("Aliasing is not supported")
    names = _source_names(source.expression)
    columns = None if tree.columns is None else _columns(tree.columns)
    where = _where(tree.where, builder)
    order = tuple(map(_order, tree.order))
    return _SelectTrees(names[0], names[1] if len(names) > 1 else None, columns, where, order)


def _only_source(sources: tuple[syntax.Source, ...]) -> syntax.Source:
    if len(sources) != 1 or sources[0].unpivots:
        raise ValidationException("Only select from a single table or index is supported.")
    return sources[0]


def _source_names(expression: syntax.Expression) -> list[str]:
    if not isinstance(expression, syntax.VariableNode | syntax.Path) or not (
        isinstance(expression, syntax.VariableNode)
        or isinstance(expression.root, syntax.VariableNode)
    ):
        raise ValidationException("Unexpected from source")
    parts = expression_path(expression).parts
    names = [part for part in parts if isinstance(part, str)]
    if len(names) < len(parts):
        raise ValidationException("Invalid list expression in source.")
    if len(names) > _NAMES_IN_SOURCE:
        raise ValidationException("A path may contain at most 2 components in the FROM clause")
    for name in names:
        _check_table_name(name)
    return names


def _check_table_name(name: str) -> None:
    # The lookup of the table finds out whether an ARN is valid.
    if _TABLE_NAME.match(name) is None and not name.startswith("arn:"):
        raise ValidationException(
            f"Table name should be within the length [{_FEWEST}, {_MOST}] and only contain "
            "'a-z', 'A-Z', '0-9', '-', '_', '.'."
        )


def _columns(
    columns: tuple[syntax.Expression, ...],
) -> tuple[tuple[str, expressions.ParsedPath], ...]:
    named: dict[str, expressions.ParsedPath] = {}
    for column in columns:
        if isinstance(column, syntax.Path) and isinstance(column.steps[-1], syntax.Star):
            raise ValidationException("Changing item's hierarchy while reading isn't supported")
        path = expression_path(column)
        name = _column_name(path)
        if name in named:
            raise ValidationException(f"Duplicate identifiers in select clause: {name}")
        named[name] = path
    document_path.distinct(path.parts for path in named.values())
    return tuple(named.items())


def _column_name(path: expressions.ParsedPath) -> str:
    """The last name in a path, with the positions after it."""
    name = ""
    for part in path.parts:
        name = part if isinstance(part, str) else f"{name}[{part}]"
    return name


def _order(term: syntax.SortTerm) -> OrderTerm:
    expression = term.expression
    if isinstance(expression, syntax.VariableNode):
        return OrderTerm(expression.name, term.is_descending)
    if isinstance(expression, syntax.Literal):
        shown = expression.token.text
    else:
        shown = literals.type_name(expression)
    fault = f"Argument to ORDER BY must be of type VariableReference. Type: {shown}"
    return OrderTerm("", term.is_descending, fault)


def _insert(tree: syntax.InsertNode, builder: TreeBuilder) -> _InsertTrees:
    if tree.unsupported:
        raise ValidationException(tree.unsupported[0])
    if not isinstance(tree.value, syntax.Tuple):
        raise ValidationException(
            "Unsupported format in item expression. Please use struct format {...} to express "
            f"item values for insert statement.{tree.value.token.at}"
        )
    members = literals.named_members(tree.value)
    values = tuple((name, builder.value(value)) for name, value in members)
    names = _source_names(tree.table)
    if len(names) > 1:
        raise ValidationException(
            "FROM clause may only contain a single table name in data manipulation statements"
        )
    return _InsertTrees(names[0], values, tree.if_not_exists)


_UPDATE_RETURN_VALUES: Final[dict[tuple[str, str], ReturnValues]] = {
    ("all", "old"): "ALL_OLD",
    ("all", "new"): "ALL_NEW",
    ("modified", "old"): "UPDATED_OLD",
    ("modified", "new"): "UPDATED_NEW",
}


def _update(tree: syntax.UpdateNode, builder: TreeBuilder) -> _UpdateTrees:
    if tree.unsupported is not None:
        raise ValidationException(tree.unsupported)
    source = _only_source(tree.sources)
    if source.has_alias:
        raise ValidationException("Aliasing is not supported")
    names = _source_names(source.expression)
    returning = _returning(tree.returning)
    where = _where(tree.where, builder)
    clauses = tuple(map(builder.clause, tree.actions))
    return_values: ReturnValues = "NONE"
    if returning is not None:
        return_values = _UPDATE_RETURN_VALUES[(returning.extent, returning.image)]
    return _UpdateTrees(names[0], len(names) > 1, clauses, where, return_values)


def _delete(tree: syntax.DeleteNode, builder: TreeBuilder) -> _DeleteTrees:
    if tree.source.has_alias:
        raise ValidationException("Aliasing is not supported")
    names = _source_names(tree.source.expression)
    element = _returning(tree.returning)
    if tree.where is None:
        raise ValidationException(NO_KEY)
    where = builder.condition(tree.where)
    returning = f"{element.extent} {element.image}".upper() if element else None
    return _DeleteTrees(names[0], len(names) > 1, where, returning)


def _returning(elements: tuple[syntax.Returning, ...]) -> syntax.Returning | None:
    if len(elements) > 1:
        raise ValidationException(
            "Invalid syntax with multiple returning elements in RETURNING clause"
        )
    for element in elements:
        if not element.has_star:
            raise ValidationException(
                "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause"
            )
        return element
    return None

"""The condition keys of actions on items: values of partition keys, and names of attributes."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from dynactor.actors.table.table import Table
from dynactor.api.access.attribute_names import paths_in, request_attributes
from dynactor.api.access.facts import DataFacts, RequestFacts
from dynactor.api.requests.expression_members import read_key_terms, read_placeholders
from dynactor.model.access.rules import UnknownFact
from dynactor.model.key_conditions import fast_range
from dynactor.model.keys.key import KeySchema
from dynactor.model.partiql import read_plan, write_plan
from dynactor.model.partiql.binding import PreparedStatement
from dynactor.model.partiql.statement import (
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    SelectStatement,
    Statement,
    UpdateStatement,
)
from dynactor.model.values import number
from dynactor.model.values.item import Item


class ItemFacts(DataFacts):
    """Items that are read or written by their keys."""

    __slots__ = ("_items", "_members")

    def __init__(
        self,
        request: RequestFacts,
        table: Table | None,
        own: Mapping[str, Sequence[str] | None],
        items: Sequence[Item],
        members: Struct | None,
    ) -> None:
        """``items`` are keys or whole items. ``members`` has the expressions, if there are any."""
        super().__init__(request, table, own)
        self._items = items
        self._members = members

    def partition_key_values(self, position: int) -> Sequence[str] | None:
        """The values of the partition key's attribute at a position."""
        partition = self.schema().partition
        if position >= len(partition):
            return None
        name, kind = partition[position].name, partition[position].type
        if len(self._items) == 1:
            return (key_text(self._items[0].get(name), kind),)
        return [key_text(item.get(name), kind) for item in self._items]

    def attributes(self) -> Collection[str]:
        """The names in keys, items and expressions."""
        names: set[str] = set()
        names.update(*self._items)
        if self._members is not None:
            names.update(request_attributes(self._members))
        return names


class ScanFacts(DataFacts):
    """A Scan, which reads all partition keys, so it has no values of them."""

    __slots__ = ("_members",)

    def __init__(
        self,
        request: RequestFacts,
        table: Table | None,
        own: Mapping[str, Sequence[str] | None],
        members: Struct,
    ) -> None:
        super().__init__(request, table, own)
        self._members = members

    def attributes(self) -> Collection[str]:
        """The names in expressions and legacy parameters."""
        return set(request_attributes(self._members))


class QueryFacts(ScanFacts):
    """A Query, which reads the items of one partition key of a table or index."""

    __slots__ = ()

    def partition_key_values(self, position: int) -> Sequence[str] | None:
        """The value of the partition key's attribute at a position."""
        members: Any = self._members
        schema = self.schema_of_index(members.IndexName)
        if position >= len(schema.partition):
            return None
        kind = schema.partition[position].type
        if members.KeyConditionExpression is not None:
            value = fast_range.partition_value(
                members.KeyConditionExpression,
                members.ExpressionAttributeNames,
                members.ExpressionAttributeValues,
                schema,
            )
            if value is not None:
                return (key_text(value, kind),)
        terms = read_key_terms(
            members.KeyConditionExpression, members.KeyConditions, read_placeholders(members)
        )
        return (key_text(terms.on(schema).partition[position], kind),)


class StatementFacts(DataFacts):
    """A PartiQL statement."""

    __slots__ = ("_prepared", "_statement")

    def __init__(
        self,
        request: RequestFacts,
        table: Table | None,
        own: Mapping[str, Sequence[str] | None],
        prepared: PreparedStatement,
        statement: Statement,
    ) -> None:
        super().__init__(request, table, own)
        self._prepared = prepared
        self._statement = statement

    def partition_key_values(self, position: int) -> Sequence[str] | None:
        """The values of the partition key that the statement reads or writes."""
        schema = self._schema()
        if position >= len(schema.partition):
            return None
        kind = schema.partition[position].type
        match self._statement:
            case SelectStatement() as select:
                values = read_plan.partition_values(select, schema)
                return None if values is None else [key_text(value, kind) for value in values]
            case (
                InsertStatement()
                | UpdateStatement()
                | DeleteStatement()
                | ExistsStatement() as write
            ):
                key = write_plan.extract_key(write, schema)
                return (key_text(key[schema.partition[position].name], kind),)

    def service_values(self, name: str) -> Sequence[str] | None:
        """The values of another key of DynamoDB, by its name without prefix."""
        if name != "fulltablescan":
            return super().service_values(name)
        if not isinstance(self._statement, SelectStatement):
            return None
        values = read_plan.partition_values(self._statement, self._schema())
        return ("true" if values is None else "false",)

    def attributes(self) -> Collection[str]:
        """The names in the statement."""
        names = set(paths_in(self._prepared.operation))
        match self._statement:
            case InsertStatement(item=item):
                names.update(item)
            case SelectStatement(order=order):
                names.update(one.name for one in order)
        return names

    def _schema(self) -> KeySchema:
        index = self._statement.index if isinstance(self._statement, SelectStatement) else None
        return self.schema_of_index(index)


def key_text(value: object, kind: str) -> str:
    """The text of a key attribute's value, the same for all spellings of one value.

    Raises ``UnknownFact`` for another type; ``ValidationException`` or ``ValueError`` for an
    invalid value.
    """
    if not isinstance(value, dict) or len(value) != 1:
        raise UnknownFact
    content = value.get(kind)
    if not isinstance(content, str):
        raise UnknownFact
    if kind == "N":
        return number.canonical(content)
    if kind == "B":
        return b64encode(b64decode(content, validate=True)).decode()
    return content

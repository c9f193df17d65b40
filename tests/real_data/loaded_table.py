"""A table loaded from a data set; requests to it take and return Python values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from boto3.dynamodb.types import TypeSerializer

from tests.real_data.data_set import DataSet, Index, Row
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import definition, local_index, unique_name

Answer = tuple[list[Row], dict[str, Any]]

_serializer = TypeSerializer()
_PLACEHOLDER = re.compile(r"#\w+")


class LoadedTable:
    """The table under test, and its expected rows."""

    def __init__(self, wire: WireClient, resource: Any, data_set: DataSet) -> None:
        self.wire = wire
        self.data_set = data_set
        self.name = unique_name(data_set.name)
        self.rows = data_set.read()
        self.partitions = sorted({row[data_set.partition] for row in self.rows})
        self._table = resource.create_table(**self._definition())
        self._table.wait_until_exists()
        with self._table.batch_writer() as batch:
            for row in self.rows:
                batch.put_item(Item=row)

    def _definition(self) -> dict[str, Any]:
        keys = [f"{self.data_set.partition}:S"]
        keys += [f"{index.sort}:{index.sort_type}" for index in self.data_set.indexes]
        indexes = tuple(map(self._index_definition, self.data_set.local_indexes))
        return definition(*keys, indexes=indexes, name=self.name)

    def _index_definition(self, index: Index) -> dict[str, Any]:
        projection = "ALL" if index.included is None else "INCLUDE"
        return local_index(
            str(index), self.data_set.partition, index.sort, projection, index.included or ()
        )

    def delete(self) -> None:
        """Delete the table."""
        self._table.delete()

    def of(self, partition: str, index: Index) -> list[Row]:
        """The expected rows of a partition, sorted by Python; equal sort keys are in any order."""
        within = [
            row
            for row in self.rows
            if row[self.data_set.partition] == partition and index.sort in row
        ]
        return sorted(within, key=lambda row: order_of(row[index.sort]))

    def held(self, partition: str, index: Index) -> list[Row]:
        """The expected entries of a partition in an index."""
        return self.data_set.held(self.of(partition, index), index)

    def by_key(self, rows: list[Row]) -> dict[tuple[Any, ...], Row]:
        """Rows by key, for comparison without order; fails if a row is repeated."""
        keyed = {tuple(self.data_set.key(row).values()): row for row in rows}
        assert len(keyed) == len(rows)
        return keyed

    def scan(self, **members: Any) -> Answer:
        """One page of a scan."""
        return self._ask("Scan", **members)

    def query(
        self, partition: str, index: Index | None = None, condition: str = "", **members: Any
    ) -> Answer:
        """One page of a query, of the table unless an index is given.

        ``condition`` uses the placeholder ``#sort``; ``values`` are Python values.
        """
        index = index or self.data_set.table
        return self._ask(
            "Query",
            IndexName=index.name,
            KeyConditionExpression="#partition = :partition" + condition,
            names={"#partition": self.data_set.partition, "#sort": index.sort},
            values={":partition": partition, **members.pop("values", {})},
            **members,
        )

    def _ask(
        self,
        operation: str,
        names: dict[str, str] | None = None,
        values: dict[str, Any] | None = None,
        **members: Any,
    ) -> Answer:
        """Send one request; returns its items as Python values, and the rest of the answer."""
        expressions = "".join(text for name, text in members.items() if name.endswith("Expression"))
        known = self.data_set.names | (names or {})
        request = {
            "TableName": self.name,
            "ExpressionAttributeNames": {
                name: known[name] for name in _PLACEHOLDER.findall(expressions)
            },
            "ExpressionAttributeValues": to_item(values or {}),
            **members,
        }
        given = {name: value for name, value in request.items() if value not in (None, {})}
        answer = self.wire(operation, given)
        items = [to_row(item) for item in answer.pop("Items", [])]
        if operation in ("Query", "Scan"):
            assert answer["Count"] == len(items) or members.get("Select") == "COUNT"
        return items, answer

    def all_of(self, ask: Callable[..., Answer], *arguments: Any, **members: Any) -> list[Row]:
        """The rows of all pages."""
        return [row for page in self.pages(ask, *arguments, **members) for row in page]

    def pages(
        self, ask: Callable[..., Answer], *arguments: Any, **members: Any
    ) -> Iterator[list[Row]]:
        """All pages of a query or scan."""
        page = partial(ask, *arguments, **members)
        start = None
        while True:
            items, answer = page(ExclusiveStartKey=start)
            yield items
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return

    def get_batch(self, rows: list[Row]) -> list[Row]:
        """The result of one BatchGetItem on the keys of rows."""
        keys = [to_item(self.data_set.key(row)) for row in rows]
        answer = self.wire("BatchGetItem", {"RequestItems": {self.name: {"Keys": keys}}})
        return [to_row(item) for item in answer["Responses"][self.name]]

    def change(self, row: Row) -> None:
        """Apply the data set's update to the row, in the table and in Python."""
        change = self.data_set.change
        key, values = to_item(self.data_set.key(row)), change.values(row)
        self._ask("UpdateItem", Key=key, UpdateExpression=change.expression, values=values)
        change.make(row)

    def remove(self, row: Row) -> Row:
        """Delete the row, in the table and in Python; returns the table's old item."""
        key = to_item(self.data_set.key(row))
        _, answer = self._ask("DeleteItem", Key=key, ReturnValues="ALL_OLD")
        self.rows.remove(row)
        return to_row(answer["Attributes"])


def to_item(row: Row) -> dict[str, Any]:
    """Python's values as DynamoDB's."""
    return {name: _serializer.serialize(value) for name, value in row.items()}


def to_row(item: dict[str, Any]) -> Row:
    """DynamoDB's values as Python's."""
    return {name: _to_python(value) for name, value in item.items()}


def _to_python(value: dict[str, Any]) -> Any:
    # Millions of values are read, so boto3's deserializer would take a fifth of the time.
    ((type_name, content),) = value.items()
    return _PYTHON[type_name](content)


_PYTHON: dict[str, Callable[[Any], Any]] = {
    "S": str,
    "N": Decimal,
    "NULL": lambda _: None,
    "M": to_row,
    "L": lambda members: list(map(_to_python, members)),
    "SS": set,
    "NS": lambda members: set(map(Decimal, members)),
}


def order_of(value: Any) -> Any:
    """DynamoDB's sort key: numbers by value, texts by their UTF-8."""
    return value.encode() if isinstance(value, str) else value

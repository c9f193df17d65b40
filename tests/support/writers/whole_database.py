"""Compares all items and entries of the writers' tables and indexes with the history."""

from __future__ import annotations

from typing import Any

from tests.support.clients.wire import Connection
from tests.support.histories.history import History, Item, check, index_violations
from tests.support.writers.writers import (
    INDEXES,
    PROJECTIONS,
    TABLES,
    TEMPORARY_TABLES,
    Place,
    table_item,
    table_key,
)


async def scan(
    connection: Connection, table: str, index: str | None = None, *, consistent: bool = True
) -> list[Item]:
    """Every row of a table or index."""
    body: dict[str, Any] = {"TableName": table, "ConsistentRead": consistent}
    if index is not None:
        body["IndexName"] = index
    items: list[Item] = []
    while True:
        answer = await connection.call("Scan", body)
        assert answer.status == 200, answer
        items += answer.body["Items"]
        if "LastEvaluatedKey" not in answer.body:
            return items
        body["ExclusiveStartKey"] = answer.body["LastEvaluatedKey"]


async def violations(connection: Connection, history: History) -> list[str]:
    """The differences between data and history.

    No client may write meanwhile. The history then restarts from the present items.
    """
    found: list[str] = []
    whole: dict[str, Item] = {}
    for table in TABLES:
        items = await scan(connection, table)
        places = {Place(table, item["pk"]["S"], item["sk"]["S"]).name: item for item in items}
        if len(places) != len(items):
            found.append(f"{table}: the scan shows an item twice")
        whole |= places
        for index in INDEXES:
            if index.table == table:
                rows = await scan(connection, table, index.name)
                name = f"{table}/{index.name}"
                found += index_violations(name, items, rows, index.project)
        found += await _wrong_counts(connection, table, items)
    answer = await connection.call("ListTables", {})
    for name in answer.body["TableNames"]:
        if name in TEMPORARY_TABLES:
            await scan(connection, name)
            whole[table_key(name)] = table_item(name)
    history.observe(whole)
    found += map(str, check(history, PROJECTIONS))
    history.restart(whole)
    return found


async def _wrong_counts(connection: Connection, table: str, items: list[Item]) -> list[str]:
    """Wrong item counts. DynamoDB updates counts every 6 hours, this server with each write."""
    answer = await connection.call("DescribeTable", {"TableName": table})
    assert answer.status == 200, answer
    described = answer.body["Table"]
    counts = {"": (described["ItemCount"], len(items))}
    shown = {each["IndexName"]: each["ItemCount"] for each in described["LocalSecondaryIndexes"]}
    for index in INDEXES:
        if index.table == table:
            rows = sum(index.project(item) is not None for item in items)
            counts[f"/{index.name}"] = (shown[index.name], rows)
    return [
        f"{table}{name}: DescribeTable counts {count} items, there are {rows}"
        for name, (count, rows) in counts.items()
        if count != rows
    ]

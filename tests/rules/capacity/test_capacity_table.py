"""The cost of each operation: the lines of capacity_table.txt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.rules.capacity.capacity_table import (
    TABLE_GLOBAL_INDEXES,
    TABLE_INDEXES,
    TABLE_KEYS,
    Bench,
    Case,
    cases,
)
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import table


@pytest.fixture(scope="module")
def bench_table(wire: WireClient) -> Iterator[str]:
    indexes = {"indexes": TABLE_INDEXES, "GlobalSecondaryIndexes": list(TABLE_GLOBAL_INDEXES)}
    with table(wire, *TABLE_KEYS, **indexes) as name:
        yield name


OURS = pytest.mark.ours_alone("no other server tells what a write that fails has cost")
DIFFERS = pytest.mark.differs_from_dynamodb_local("the line says so")


def parameter(case: Case) -> Any:
    """A test's parameter with the line as its name."""
    name = f"line {case.line_number}: {case.text}".encode("ascii", "replace").decode()
    marks = [DIFFERS] if case.differs_from_dynamodb_local else []
    if case.operation.startswith("failed-"):
        marks.append(OURS)
    return pytest.param(case, id=name, marks=marks)


@pytest.mark.parametrize("case", [parameter(c) for c in cases() if c.operation != "scan"])
def test_an_operation_consumes(wire, bench_table, pk, case):
    assert Bench(wire, bench_table, pk).run(case) == case.expected


@pytest.mark.parametrize("case", [parameter(c) for c in cases() if c.operation == "scan"])
def test_a_scan_consumes(wire, pk, case):
    """Each case has its own table with five units of each kind, so the table has one partition."""
    throughput = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    members = {
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": throughput,
        "GlobalSecondaryIndexes": [
            index | {"ProvisionedThroughput": throughput} for index in TABLE_GLOBAL_INDEXES
        ],
    }
    with table(wire, *TABLE_KEYS, indexes=TABLE_INDEXES, **members) as name:
        assert Bench(wire, name, pk).run(case) == case.expected


@pytest.mark.differs_from_dynamodb_local("it has no partitions")
def test_a_scan_rounds_up_in_each_partition(wire):
    """A new on-demand table has four partitions; each of them is read."""
    with table(wire, "p:S") as name:
        wire("PutItem", {"TableName": name, "Item": {"p": {"S": "a"}}})
        ask = {"TableName": name, "ReturnConsumedCapacity": "TOTAL"}

        eventual = wire("Scan", ask)
        strong = wire("Scan", ask | {"ConsistentRead": True})

    assert eventual["ConsumedCapacity"]["CapacityUnits"] == 4 * 0.5
    assert strong["ConsumedCapacity"]["CapacityUnits"] == 4 * 1.0


def test_the_table_has_at_least_250_cases_of_19_operations():
    operations = [case.operation for case in cases()]

    assert len(operations) >= 250
    assert len(set(operations)) == 19

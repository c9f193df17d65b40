"""The sources of a table's or index's limits."""

from __future__ import annotations

import pytest

from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition, Throughput
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.throttling.resource import (
    OperationThroughput,
    ResourceThroughput,
    resource_throughput,
)

KEY = KeySchema((KeyAttribute("pk", "S"),))


def index(**members) -> GlobalIndex:
    return GlobalIndex(IndexDefinition(1, "i", KEY, Projection("ALL")), **members)


def table(**members) -> TableDefinition:
    return TableDefinition("t", 1, "uuid", 0.0, KEY.attributes, KEY, **members)


def test_a_provisioned_table_is_warm_for_its_provisioned_units():
    definition = table(throughput=Throughput(30, 20))

    assert resource_throughput("PROVISIONED", definition) == ResourceThroughput(
        "PROVISIONED", OperationThroughput(30, 30), OperationThroughput(20, 20)
    )


def test_an_index_has_units_of_its_own():
    """S98, S166, S167: its table's mode, its own units."""
    found = resource_throughput("PROVISIONED", index(throughput=Throughput(7, 8)))

    assert (found.read.provisioned, found.write.provisioned) == (7, 8)


def test_a_new_on_demand_table_is_warm_for_12000_reads_and_4000_writes():
    found = resource_throughput("PAY_PER_REQUEST", table(billing_mode="PAY_PER_REQUEST"))

    assert found == ResourceThroughput(
        "PAY_PER_REQUEST", OperationThroughput(0, 12_000), OperationThroughput(0, 4_000)
    )


def test_warm_throughput_and_maxima_are_taken_from_the_definition():
    warm = {"ReadUnitsPerSecond": 20_000, "WriteUnitsPerSecond": 5_000}
    definition = index(warm_throughput=warm, on_demand_throughput={"MaxWriteRequestUnits": 50})

    found = resource_throughput("PAY_PER_REQUEST", definition)

    assert found.read == OperationThroughput(0, 20_000)
    assert found.write == OperationThroughput(0, 5_000, 50)


@pytest.mark.parametrize("maximum", [-1, None])
def test_a_removed_maximum_has_no_effect(maximum):
    members = {} if maximum is None else {"MaxReadRequestUnits": maximum}

    found = resource_throughput("PAY_PER_REQUEST", index(on_demand_throughput=members))

    assert found.read.maximum is None

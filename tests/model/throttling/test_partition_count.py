"""The number of partitions for a throughput."""

from __future__ import annotations

import pytest

from dynactor.model.definitions.table import Throughput
from dynactor.model.throttling.partition_count import partition_count


@pytest.mark.parametrize(
    ("reads", "writes", "count"),
    [(1, 1, 1), (3_000, 0, 1), (3_000, 1, 2), (1_500, 500, 1), (0, 20_000, 20), (6_000, 2_000, 4)],
)
def test_provisioned_partitions_share_reads_and_writes(reads, writes, count):
    assert partition_count("PROVISIONED", Throughput(reads, writes)) == count


def test_a_new_on_demand_table_has_four():
    assert partition_count("PAY_PER_REQUEST", Throughput(0, 0)) == 4

"""How many partitions serve a throughput."""

from __future__ import annotations

from typing import Any

from dynactor.model.definitions.table import BillingMode, Throughput
from dynactor.model.limits import ON_DEMAND_PARTITIONS, PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from dynactor.model.tables.throughput_rules import at_least_warm


def partition_count(
    billing_mode: BillingMode,
    throughput: Throughput,
    warm_throughput: dict[str, Any] | None = None,
) -> int:
    """The number of partitions that a table or global index has at least, by DynamoDB's formula.

    Four on demand (12,000 read and 4,000 write units); else as many as the provisioned units
    need: ceil(RCU / 3,000 + WCU / 1,000). A higher warm throughput needs enough partitions for its
    reads and for its writes. Sources: "Partitions and data distribution", "DynamoDB warm
    throughput".
    """
    warm = at_least_warm(billing_mode, throughput, warm_throughput)
    warmed = max(
        -(-warm["ReadUnitsPerSecond"] // PARTITION_READ_UNITS),
        -(-warm["WriteUnitsPerSecond"] // PARTITION_WRITE_UNITS),
    )
    return max(_least(billing_mode, throughput), warmed)


def _least(billing_mode: BillingMode, throughput: Throughput) -> int:
    if billing_mode == "PAY_PER_REQUEST":
        return ON_DEMAND_PARTITIONS
    reads = throughput.read_units * PARTITION_WRITE_UNITS
    writes = throughput.write_units * PARTITION_READ_UNITS
    return -(-(reads + writes) // (PARTITION_READ_UNITS * PARTITION_WRITE_UNITS)) or 1

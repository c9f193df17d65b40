"""How many partitions serve a throughput."""

from __future__ import annotations

from model.limits import ON_DEMAND_PARTITIONS, PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from model.table import BillingMode, Throughput


def partition_count(billing_mode: BillingMode, throughput: Throughput) -> int:
    """The number of partitions of a new table or global index, by DynamoDB's formula.

    Four on demand (12,000 read and 4,000 write units); else as many as the provisioned units
    need: ceil(RCU / 3,000 + WCU / 1,000). Source: "Partitions and data distribution".
    """
    if billing_mode == "PAY_PER_REQUEST":
        return ON_DEMAND_PARTITIONS
    reads = throughput.read_units * PARTITION_WRITE_UNITS
    writes = throughput.write_units * PARTITION_READ_UNITS
    return -(-(reads + writes) // (PARTITION_READ_UNITS * PARTITION_WRITE_UNITS)) or 1

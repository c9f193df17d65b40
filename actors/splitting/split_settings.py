"""The settings of splits."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from dynactor.model.limits import PARTITION_BYTES
from dynactor.model.option import Option, OptionGroup


class SplitSettings(Struct, frozen=True):
    """When to split partitions; ``heat_seconds`` is domain time."""

    size_limit_bytes: Annotated[
        int, Option("--partition-limit-bytes", OptionGroup.TEST_PARTITIONS, above=0)
    ] = PARTITION_BYTES
    """Size at which a partition of a table or global secondary index splits."""

    heat_seconds: Annotated[
        float, Option("--split-heat-seconds", OptionGroup.TEST_PARTITIONS, above=0)
    ] = 60
    """Seconds near its throughput limit after which a partition splits."""

    check_seconds: Annotated[
        float, Option("--split-check-seconds", OptionGroup.TEST_PARTITIONS, above=0)
    ] = 5
    """Seconds between two searches for partitions to split."""

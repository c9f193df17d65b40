"""The unused units of a partition, stored for the next start of the server."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Balance(Struct, frozen=True):
    """The read and write units left in one partition; a negative number is debt."""

    read_units: float
    write_units: float


class StoredBalances(Struct, frozen=True):
    """The stored balances of a table or global index, by partition number.

    A partition without a stored balance has all units that it can save. Partitions earn units again
    from ``as_of_seconds`` on.
    """

    as_of_seconds: float
    by_partition: Mapping[int, Balance] = {}

"""The shared environment of all tables."""

from __future__ import annotations

from collections.abc import Callable
from random import Random, SystemRandom
from typing import NamedTuple

from dynactor.actors.feeds.change_feed import RecentChanges
from dynactor.actors.limits.burst_balances import BalanceWriter
from dynactor.actors.limits.throttle_settings import ThrottleSettings
from dynactor.actors.partition.table_partition import PartitionSettings
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.storage.store import Store


class TableEnvironment(NamedTuple):
    """The parts that all tables of a database share."""

    store: Store
    supervisor: Supervisor
    clock: Clock
    recent: RecentChanges
    settings: PartitionSettings
    balances: BalanceWriter
    throttling: ThrottleSettings = ThrottleSettings()
    # Units consumed by requests to all tables since the server started.
    consumed_units: Callable[[], float] = float
    randomness: Random = SystemRandom()

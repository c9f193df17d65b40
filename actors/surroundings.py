"""What the actors of every table live with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from actors.balance_keeper import BalanceKeeper
from actors.change_feed import RecentChanges
from actors.partition import PartitionSettings
from actors.runtime.clock import Clock
from actors.runtime.supervisor import Supervisor
from actors.throttle import ThrottleSettings
from storage.store import Store


class Surroundings(NamedTuple):
    """The same for all tables of a database."""

    store: Store
    supervisor: Supervisor
    clock: Clock
    recent: RecentChanges
    settings: PartitionSettings
    balances: BalanceKeeper
    throttling: ThrottleSettings = ThrottleSettings()
    # What was read and written of all tables since the server started.
    consumed_units: Callable[[], float] = float

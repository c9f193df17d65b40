"""The description of a run for its worker processes. It never holds credentials."""

from __future__ import annotations

from msgspec import Struct


class Plan(Struct, frozen=True, kw_only=True):
    """The requests, their endpoint, rate and duration.

    Invariant: ``keys`` is a multiple of ``workers * collection_items``, so each worker can have
    whole item collections of its own.
    """

    endpoint: str
    table: str
    # Shares by the names of operations; their sum is arbitrary.
    mix: dict[str, float]
    key_choice: str = "uniform"
    keys: int = 10_000
    item_size: str = "300"
    fields: int = 5
    # Items under one partition key, and under one key of the global index.
    collection_items: int = 10
    query_items: int = 10
    batch_items: int = 25
    transaction_items: int = 4
    consistent: bool = True
    connections: int = 64
    workers: int = 1
    # Requests per second of all workers; 0: each connection sends as soon as it can.
    rate: float = 0.0
    ramp_seconds: float = 0.0
    warm_up_seconds: float = 1.0
    seconds: float = 10.0
    timeout_seconds: float = 30.0
    seed: int = 1
    verify: bool = False
    # The longest time until a global index shows all answered writes.
    index_deadline_seconds: float = 30.0
    fill: bool = True
    sign: bool = False
    region: str = "local"
    local_index: bool = False
    global_index: bool = False

    def connections_of(self, worker: int) -> int:
        """The number of connections of a worker."""
        return len(range(worker, self.connections, self.workers))

    @property
    def lead_seconds(self) -> float:
        """The time before the measurement starts."""
        return self.ramp_seconds + self.warm_up_seconds

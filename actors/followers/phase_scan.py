"""The scan of a phase, which ends with the scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from dynactor.actors.followers.outside import Inlet, Outlet
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.scan import TableScan
from dynactor.actors.followers.sink import FillSink, RowSink
from dynactor.storage.store import Store

SinkT = TypeVar("SinkT", bound=RowSink[Any] | FillSink | Outlet | Inlet)


class PhaseScan(Generic[SinkT]):
    """A scan that ends its phase when it ends or fails; ``failure`` is the reason why it failed."""

    def __init__(
        self,
        name: str,
        table_id: int,
        cursor_key: bytes,
        sink: SinkT,
        store: Store,
        *,
        pacing: Pacing,
        over: Callable[[], None],
    ) -> None:
        """``over`` ends the phase; see ``TableScan`` for the others."""
        self.sink = sink
        self.failure: str | None = None
        self._over = over
        self.scan = TableScan(
            name, table_id, cursor_key, sink, store, ended=over, failed=self._fail, pacing=pacing
        )

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._over()

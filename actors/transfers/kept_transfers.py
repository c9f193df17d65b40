"""Exports, imports or bulk operations by id, with the periods of their lists and tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from random import Random
from typing import Any, Final, Generic, Protocol, TypeVar

from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.runtime.clock import Clock
from dynactor.model.errors import DynamoDBError
from dynactor.model.limits import TRANSFER_SECONDS, TRANSFER_TOKEN_SECONDS
from dynactor.model.transfers.transfer_names import transfer_id

_MILLISECONDS: Final = 1_000
_SUFFIX_BYTES: Final = 4
# Maximum number of transfers that one commit deletes.
_FORGOTTEN: Final = 1_000


class Transfer(Protocol):
    """An export, an import or a bulk operation."""

    @property
    def request(self) -> dict[str, Any]:
        """The members of the request, with their wire names."""


TransferT = TypeVar("TransferT", bound=Transfer)


class KeptTransfers(Generic[TransferT]):
    """Transfers of one kind, by id. Invariant: every transfer in it is durable.

    A transfer is listed for 90 days, and its client token is valid for 8 hours. ``since`` returns
    the beginning of these periods in epoch seconds, or None before they begin. ``key`` returns the
    key of the record with an id.
    """

    def __init__(
        self,
        clock: Clock,
        randomness: Random,
        *,
        key: Callable[[str], bytes],
        since: Callable[[TransferT], float | None],
    ) -> None:
        self._clock = clock
        self._randomness = randomness
        self._key = key
        self._since = since
        self._by_id: dict[str, TransferT] = {}

    def load(self, transfers: Iterable[tuple[str, TransferT]]) -> None:
        """Replace all transfers by the stored ones."""
        self._by_id = dict(transfers)

    def __getitem__(self, an_id: str) -> TransferT:
        return self._by_id[an_id]

    def __setitem__(self, an_id: str, transfer: TransferT) -> None:
        self._by_id[an_id] = transfer

    def __iter__(self) -> Iterator[TransferT]:
        return iter(list(self._by_id.values()))

    def find(self, an_id: str) -> TransferT | None:
        """The transfer with this id, unless it was forgotten."""
        found = self._by_id.get(an_id)
        return None if found is None or self._age(found) > TRANSFER_SECONDS else found

    @property
    def listed(self) -> list[TransferT]:
        """The transfers of the last 90 days, the newest first."""
        newest_first = [self._by_id[an_id] for an_id in sorted(self._by_id, reverse=True)]
        return [each for each in newest_first if self._age(each) <= TRANSFER_SECONDS]

    async def forget_old(self, owner: CatalogOwner) -> None:
        """Delete some of the transfers that are not listed any more; raises ``StoreError``."""
        is_old = (
            an_id for an_id, each in self._by_id.items() if self._age(each) > TRANSFER_SECONDS
        )
        old = list(islice(is_old, _FORGOTTEN))
        if old:
            await owner.change(deletes=list(map(self._key, old)))
            for an_id in old:
                del self._by_id[an_id]

    def with_same_token(self, request: dict[str, Any], conflict: DynamoDBError) -> TransferT | None:
        """The transfer that this request repeats; raises ``conflict`` if the requests differ."""
        token = request.get("ClientToken")
        if token is None:
            return None
        for each in self._by_id.values():
            if each.request.get("ClientToken") == token:
                if self._age(each) >= TRANSFER_TOKEN_SECONDS:
                    continue
                if each.request != request:
                    raise conflict
                return each
        return None

    def new_id(self) -> tuple[str, float]:
        """A new id, and its time in epoch seconds, in whole milliseconds."""
        now = int(self._clock.now_epoch_seconds() * _MILLISECONDS) / _MILLISECONDS
        suffix = self._randomness.randbytes(_SUFFIX_BYTES).hex()
        return transfer_id(round(now * _MILLISECONDS), suffix), now

    def _age(self, transfer: TransferT) -> float:
        """Seconds since the beginning of the periods; 0 before they begin."""
        since = self._since(transfer)
        return 0.0 if since is None else self._clock.now_epoch_seconds() - since

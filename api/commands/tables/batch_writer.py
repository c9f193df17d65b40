"""Writes items with BatchWriteItem: repeats unprocessed writes, and finds the refused ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import anyio
import msgspec

from dynactor.api.clients.client import Endpoint, RequestFailed
from dynactor.api.commands.tables.concurrent_calls import concurrent_calls
from dynactor.model.back_off import BackOff
from dynactor.model.limits import BATCH_WRITE_REQUESTS

# JSON of many small attributes is several times their size. A request may have 16 MB.
_BATCH_BYTES: Final = 8_000_000
_CONCURRENT_BATCHES: Final = 8
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 5.0
# The endpoint refuses a batch with one of these errors because of a single item.
_ITEM_ERRORS: Final = frozenset(
    {"ValidationException", "ItemCollectionSizeLimitExceededException", "SerializationException"}
)

# A PutRequest or a DeleteRequest, as BatchWriteItem takes them.
Write: TypeAlias = dict[str, Any]

_encode = msgspec.json.Encoder().encode


class RefusedWrite(NamedTuple):
    """A write that the endpoint refuses, by its place among the given writes, with the error."""

    place: int
    error: RequestFailed


class _Placed(NamedTuple):
    """A write with its place among the given writes."""

    place: int
    write: Write


class BatchWriter:
    """Writes to one table, several batches at a time."""

    def __init__(
        self, endpoint: Endpoint, table_name: str, pause: Callable[[float], Awaitable[None]]
    ) -> None:
        self._endpoint = endpoint
        self._table_name = table_name
        self._pause = pause
        self._slots = anyio.CapacityLimiter(_CONCURRENT_BATCHES)

    async def write(self, writes: Sequence[Write]) -> list[RefusedWrite]:
        """Write items with distinct keys; returns the refused writes in their order.

        Raises ``RequestFailed`` or ``CannotCall`` if no write of a batch can succeed.
        """
        refused: list[RefusedWrite] = []
        async with concurrent_calls() as group:
            for batch in _batches(writes):
                group.start_soon(self._write_batch, batch, refused)
        return sorted(refused)

    async def _write_batch(self, batch: list[_Placed], refused: list[RefusedWrite]) -> None:
        async with self._slots:
            await self._write_all(batch, refused)

    async def _write_all(self, batch: list[_Placed], refused: list[RefusedWrite]) -> None:
        writes = [placed.write for placed in batch]
        back_off = BackOff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        while writes:
            request = {"RequestItems": {self._table_name: writes}}
            try:
                answer = await self._endpoint.call("BatchWriteItem", request)
            except RequestFailed as error:
                if error.error_type not in _ITEM_ERRORS:
                    raise
                if len(batch) == 1:
                    refused.append(RefusedWrite(batch[0].place, error))
                    return
                # Puts and deletes of whole items may be repeated, so write each one separately.
                for placed in batch:
                    await self._write_all([placed], refused)
                return
            writes = answer.get("UnprocessedItems", {}).get(self._table_name, [])
            if writes:
                await self._pause(back_off.pause_seconds())


def _batches(writes: Sequence[Write]) -> Iterator[list[_Placed]]:
    """The writes in batches within the limits of BatchWriteItem."""
    batch: list[_Placed] = []
    batch_bytes = 0
    for place, write in enumerate(writes):
        size_bytes = len(_encode(write))
        if len(batch) == BATCH_WRITE_REQUESTS or (
            batch and batch_bytes + size_bytes > _BATCH_BYTES
        ):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(_Placed(place, write))
        batch_bytes += size_bytes
    if batch:
        yield batch

"""The actor that merges the changes of a table in a period, for an incremental export."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from msgspec import structs

from dynactor.actors.followers.table_copy import TableCopy
from dynactor.model.keys import key as keys
from dynactor.storage.store import Row
from dynactor.streams import change_record
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.sequence_number import SequenceNumber

_NO_NUMBER = SequenceNumber(0, 0)


class ChangesCopy(TableCopy):
    """Keeps one change for each changed item: from before the period to its end.

    The change has the time of the last one. An item that was both put and deleted in the period has
    a change without images, which ``decoded`` leaves out.
    """

    def __init__(self, *args: Any, until_us: int, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._until_us = until_us

    async def _copy(self, stopped: asyncio.Future[None]) -> bool:
        snapshot = await self._begin()
        async with aclosing(snapshot.changes(self._definition.name, self._until_us)) as pages:
            return await self._write_pages(pages, self._merge, stopped)

    async def _merge(self, records: Sequence[ChangeRecord]) -> None:
        merged: dict[bytes, ChangeRecord] = {}
        for record in records:
            position = keys.encode(self._definition.key_schema, record.key)
            merged[position] = _after(merged.get(position), record)
        copied = await self._store.latest.load(list(map(self._sink.key, merged)))
        await self._commit(
            [
                (self._sink.key(position), change_record.encode(_after(_decoded(value), record)))
                for (position, record), value in zip(merged.items(), copied, strict=True)
            ]
        )


def decoded(rows: Sequence[Row]) -> list[ChangeRecord]:
    """The changes in rows that ``ChangesCopy`` wrote."""
    records = [change_record.decode(_NO_NUMBER, row.value) for row in rows]
    return [each for each in records if each.old is not None or each.new is not None]


def _decoded(value: bytes | None) -> ChangeRecord | None:
    return None if value is None else change_record.decode(_NO_NUMBER, value)


def _after(earlier: ChangeRecord | None, later: ChangeRecord) -> ChangeRecord:
    """One change in place of two, or of one."""
    return later if earlier is None else structs.replace(later, old=earlier.old)

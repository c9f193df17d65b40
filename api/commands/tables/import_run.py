"""Writes the items of files into a table, in the order of the files, and continues after a stop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from msgspec import Struct

from dynactor.api.clients.unit_rate import wait_after
from dynactor.api.commands.tables.batch_writer import BatchWriter
from dynactor.api.commands.tables.table_files import (
    CsvOptions,
    InputFormat,
    SourceFile,
    read_records,
)
from dynactor.model.errors import SerializationException, ValidationException
from dynactor.model.files.item_reader import ItemReader
from dynactor.model.files.records import Fault, Record
from dynactor.model.throttling.steady_rate import SteadyRate

_CHUNK_RECORDS: Final = 1_000

DUPLICATE: Final = "DuplicateKey"


class Place(Struct):
    """Number of files and of records of the next file that are written."""

    files: int = 0
    records: int = 0


class Counts(Struct):
    """The counts of an import; a later item replaces an earlier one with the same key."""

    records: int = 0
    written: int = 0
    refused: int = 0
    replaced: int = 0


class ItemChanger(Protocol):
    """Changes items before they are written."""

    def changed(self, item: dict[str, Any]) -> dict[str, Any]:
        """The item to write in place of this one."""


class Report(Protocol):
    """Reports the faults and the progress of an import."""

    def fault(self, file: SourceFile, fault: Fault) -> None:
        """Report a record that is not written, or that a later one has replaced."""

    def progress(self, counts: Counts, place: Place) -> None:
        """Report that the records up to a place are written."""


class _ReadRecord(NamedTuple):
    record: Record
    item: dict[str, Any]


class ImportRun:
    """One import. Without a writer it only checks the items."""

    def __init__(
        self,
        reader: ItemReader,
        writer: BatchWriter | None,
        report: Report,
        *,
        change: ItemChanger | None = None,
        rate: SteadyRate | None = None,
        turn: Callable[[], Awaitable[None]],
    ) -> None:
        self.counts = Counts()
        self._reader = reader
        self._writer = writer
        self._report = report
        self._change = change
        self._rate = rate
        self._turn = turn

    async def read(
        self,
        files: Sequence[SourceFile],
        input_format: InputFormat,
        options: CsvOptions,
        start: Place,
    ) -> None:
        """Write the records from a place on.

        Raises ``TransferFailed``, ``RequestFailed`` or ``CannotCall``.
        """
        for number, file in enumerate(files[start.files :], start.files):
            skipped = start.records if number == start.files else 0
            done = 0
            async for chunk in _chunks(read_records(file, input_format, options)):
                if done + len(chunk) > skipped:
                    await self._write(file, chunk[max(skipped - done, 0) :])
                done += len(chunk)
                if done > skipped:
                    self._report.progress(self.counts, Place(number, done))
                await self._turn()
            self._report.progress(self.counts, Place(number + 1, 0))

    async def _write(self, file: SourceFile, chunk: Sequence[Record | Fault]) -> None:
        self.counts.records += len(chunk)
        # The last item of each key. The batches of a chunk are written concurrently.
        items: dict[bytes, _ReadRecord] = {}
        for record in chunk:
            if isinstance(record, Fault):
                self._refuse(file, record)
                continue
            item = record.item
            try:
                if self._change is not None:
                    # The change expects a valid item.
                    self._reader.read(item)
                    item = self._change.changed(item)
                position = self._reader.read(item).position
            except (ValidationException, SerializationException) as error:
                name = type(error).__name__
                self._refuse(file, Fault(record.line, record.text, name, error.message))
                continue
            if position in items:
                self.counts.replaced += 1
                earlier = items[position].record
                message = "A later item has the same key"
                self._report.fault(file, Fault(earlier.line, earlier.text, DUPLICATE, message))
            items[position] = _ReadRecord(record, item)
        reads = list(items.values())
        if self._writer is not None:
            writes = [{"PutRequest": {"Item": read.item}} for read in reads]
            for refused in await self._writer.write(writes):
                record = reads[refused.place].record
                error_type, message = refused.error.error_type, refused.error.message
                self._refuse(file, Fault(record.line, record.text, error_type, message))
                self.counts.written -= 1
            if self._rate is not None:
                await wait_after(self._rate, len(reads))
        self.counts.written += len(reads)

    def _refuse(self, file: SourceFile, fault: Fault) -> None:
        self.counts.refused += 1
        self._report.fault(file, fault)


async def _chunks(
    records: AsyncIterator[Record | Fault],
) -> AsyncIterator[list[Record | Fault]]:
    chunk: list[Record | Fault] = []
    async for record in records:
        chunk.append(record)
        if len(chunk) == _CHUNK_RECORDS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk

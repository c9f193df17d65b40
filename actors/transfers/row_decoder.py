"""Decodes the content of a file to the rows of an imported table, without I/O."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from dynactor.actors.transfers.source_records import lines_or_ion
from dynactor.model.errors import SerializationException, ValidationException
from dynactor.model.files.csv_columns import csv_types
from dynactor.model.files.item_reader import ItemReader
from dynactor.model.files.records import BadContent, Bounded, Csv, Fault, Format, Records
from dynactor.storage import codec, key_layout
from dynactor.storage.catalog import TableRecord
from dynactor.storage.partition_map import PartitionMap
from dynactor.streams.sequence_number import SequenceNumber

DUPLICATE: Final = "DuplicateKey"

# Requests wait while a turn's records are decoded.
_TURN_RECORDS: Final = 64
# Requests wait while the rows of a page are committed.
_PAGE_RECORDS: Final = 512
# The error log has no more of a record's text.
_FAULT_BYTES: Final = 1_024


class DecodedRows(Struct, array_like=True, gc=False):
    """The rows of some records, each key once, with the line of each item in its file.

    ``sizes`` has the number and the bytes of the items for the number of each partition.
    """

    rows: list[tuple[bytes, bytes]]
    lines: list[int]
    sizes: dict[int, tuple[int, int]]
    processed: int
    errors: int
    duplicates: int
    faults: list[Fault]


def duplicate(line: int) -> Fault:
    """The fault of an item that replaces another one of the import."""
    return Fault(line, b"", DUPLICATE, "An item with this key occurs more than once")


class RowDecoder:
    """Decodes one file after another.

    Between the pages, the iterators return None, when other work should take its turn.
    """

    def __init__(self, record: TableRecord, request: dict[str, Any]) -> None:
        """``request`` has the members of the import's request, with their wire names."""
        definition = record.definition
        self._request = request
        self._reader = ItemReader(definition)
        self._types = csv_types(definition)
        self._prefix = key_layout.row_prefix(definition.table_id)
        self._partitions = PartitionMap(record.partitions)
        # The version of the items of each partition: counter 0 precedes its first change.
        self._versions = {
            each.number: SequenceNumber(each.number, 0).packed() for each in record.partitions
        }
        self._format: Format | None = None

    def begin(self) -> None:
        """Begin a file; raises ``IonMissing``."""
        if self._request["InputFormat"] != "CSV":
            self._format = lines_or_ion(self._request["InputFormat"])
        else:
            options: dict[str, Any] = self._request.get("InputFormatOptions", {}).get("Csv", {})
            header = options.get("HeaderList")
            self._format = Bounded(Csv(self._types, options.get("Delimiter", ","), header))

    def feed(self, content: bytes) -> Iterator[DecodedRows | None]:
        """The rows that end in the next part; use up each iterator. Raises ``BadContent``."""
        assert self._format is not None
        return self._pages(self._format.feed(content))

    def end(self) -> Iterator[DecodedRows | None]:
        """The rows of the rest of the file; raises as ``feed``."""
        assert self._format is not None
        return self._pages(self._format.end())

    def _pages(self, records: Records) -> Iterator[DecodedRows | None]:
        is_more = True
        while is_more:
            page = _DecodedPage()
            for _ in range(0, _PAGE_RECORDS, _TURN_RECORDS):
                try:
                    is_more = self._decode(islice(records, _TURN_RECORDS), page)
                except BadContent:
                    # The error log also has the faults before the bad content.
                    yield self._decoded(page)
                    raise
                if not is_more:
                    break
                yield None
            if page.processed:
                yield self._decoded(page)

    def _decode(self, records: Records, page: _DecodedPage) -> bool:
        """Decode some records; False if there are no more."""
        read, prefix, found = self._reader.read, self._prefix, page.found
        number_at, versions, pack = self._partitions.number_at, self._versions, codec.pack
        before = page.processed
        for record in records:
            page.processed += 1
            if isinstance(record, Fault):
                page.refuse(record)
                continue
            try:
                position, size_bytes, data = read(record.item)
            except (ValidationException, SerializationException) as error:
                name = type(error).__name__
                page.refuse(Fault(record.line, record.text, name, error.message))
                continue
            if position in found:
                page.duplicates += 1
                page.faults.append(duplicate(found[position][1]))
            number = number_at(position)
            row = prefix + position, pack(versions[number], size_bytes, data)
            found[position] = row, record.line, number, size_bytes
        return page.processed - before == _TURN_RECORDS

    @staticmethod
    def _decoded(page: _DecodedPage) -> DecodedRows:
        sizes: dict[int, tuple[int, int]] = {}
        for _, _, number, size_bytes in page.found.values():
            count, sum_bytes = sizes.get(number, (0, 0))
            sizes[number] = count + 1, sum_bytes + size_bytes
        return DecodedRows(
            [row for row, _, _, _ in page.found.values()],
            [line for _, line, _, _ in page.found.values()],
            sizes,
            page.processed,
            page.errors,
            page.duplicates,
            page.faults,
        )


class _DecodedPage:
    def __init__(self) -> None:
        # The row, the line, the partition's number and the size of each item, by its position.
        self.found: dict[bytes, tuple[tuple[bytes, bytes], int, int, int]] = {}
        self.faults: list[Fault] = []
        self.processed = 0
        self.errors = 0
        self.duplicates = 0

    def refuse(self, fault: Fault) -> None:
        """Count a record without an item."""
        self.errors += 1
        self.faults.append(fault._replace(text=fault.text[:_FAULT_BYTES]))

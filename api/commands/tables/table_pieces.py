"""The pieces of an upload: files of exports as they are, and other items as DynamoDB JSON."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from dynactor.api.commands.tables.import_run import Counts, ItemChanger
from dynactor.api.commands.tables.table_files import (
    CsvOptions,
    InputFormat,
    SourceFile,
    read_records,
)
from dynactor.model.errors import SerializationException, ValidationException
from dynactor.model.files.item_reader import ItemReader
from dynactor.model.files.records import Fault, Record

_EXPORTED: Final = ".json.gz"
# Content of a piece, before compression. The server reads a piece once it is complete.
_PIECE_BYTES: Final = 16 * 1024 * 1024
# The fastest compression, because the server decompresses the pieces immediately.
_LEVEL: Final = 1
_GZIP: Final = 31

_encode = msgspec.json.Encoder().encode


class Piece(NamedTuple):
    """A piece. The server reports the faults in ``file``, whose lines the piece has unchanged."""

    content: bytes | Path
    file: SourceFile | None = None


class TablePieces:
    """The pieces of the files of one table. The same files have the same pieces."""

    def __init__(
        self,
        input_format: InputFormat,
        options: CsvOptions,
        reader: ItemReader,
        change: ItemChanger | None,
        fault: Callable[[SourceFile, Fault], None],
    ) -> None:
        """``fault`` gets the records that are not in a piece."""
        self.counts = Counts()
        self._input_format: InputFormat = input_format
        self._options = options
        self._reader = reader
        self._change = change
        self._fault = fault

    async def of(self, files: Sequence[SourceFile]) -> AsyncIterator[Piece]:
        """The pieces of these files, in order; raises ``TransferFailed`` if a file is damaged."""
        lines: list[bytes] = []
        size_bytes = 0
        for file in files:
            if self._is_ready(file):
                if lines:
                    yield _compressed(lines)
                    lines, size_bytes = [], 0
                yield Piece(file.path, file)
                continue
            async for record in read_records(file, self._input_format, self._options):
                self.counts.records += 1
                try:
                    line = self._line(record)
                except _Refused as refused:
                    self.counts.refused += 1
                    self._fault(file, refused.fault)
                    continue
                lines.append(line)
                size_bytes += len(line)
                if size_bytes >= _PIECE_BYTES:
                    yield _compressed(lines)
                    lines, size_bytes = [], 0
        if lines:
            yield _compressed(lines)

    def _is_ready(self, file: SourceFile) -> bool:
        """Whether a file is uploaded as it is: one of an export, with known checksum."""
        return (
            self._change is None
            and file.listed is not None
            and file.path.name.endswith(_EXPORTED)
            and self._input_format in ("auto", "json-lines")
        )

    def _line(self, record: Record | Fault) -> bytes:
        """A line of DynamoDB JSON; raises ``_Refused`` if the record is no valid item."""
        if isinstance(record, Fault):
            raise _Refused(record)
        item = record.item
        try:
            self._reader.read(item)
            if self._change is not None:
                # The change expects a valid item.
                item = self._change.changed(item)
                self._reader.read(item)
        except (ValidationException, SerializationException) as error:
            name = type(error).__name__
            raise _Refused(Fault(record.line, record.text, name, error.message)) from None
        return _encode({"Item": item}) + b"\n"


class _Refused(Exception):
    """A record is not written."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def _compressed(lines: Sequence[bytes]) -> Piece:
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return Piece(compressor.compress(b"".join(lines)) + compressor.flush())

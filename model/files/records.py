"""Divides the content of a file into records, and decodes each one to an item.

A record that can't be decoded is a fault with its place. The items are not checked here.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from dynactor.model.files.csv_columns import BadCell, BadHeader, CsvColumn, CsvTypes

# The largest item takes less than this in any format.
_RECORD_BYTES: Final = 16 * 1024 * 1024
# A blank stretch and a record, each of the largest size.
_STRETCH_BYTES: Final = 2 * _RECORD_BYTES
BOM: Final = b"\xef\xbb\xbf"
_QUOTE: Final = b'"'
_END: Final = b"\n"
_EVEN: Final = 2

UNDECODABLE: Final = "InvalidRecord"
_NO_MEMBERS: Final[Mapping[str, Any]] = {}

# The default of 128 KB is less than an item may have.
csv.field_size_limit(_RECORD_BYTES)


class BadContent(Exception):
    """The rest of the file can't be divided into records."""


class Record(NamedTuple):
    """A record: the number of its first line, its text, and its item, not checked yet.

    ``members`` are the members beside the item, as in DynamoDB JSON, and may include the item.
    """

    line: int
    text: bytes
    item: dict[str, Any]
    members: Mapping[str, Any] = _NO_MEMBERS


class Fault(NamedTuple):
    """A record that can't be decoded or is no item; ``code`` is for programs."""

    line: int
    text: bytes
    code: str
    message: str


Records: TypeAlias = Iterator[Record | Fault]


class Format(Protocol):
    """Decodes the records of one file."""

    def feed(self, data: bytes) -> Records:
        """The records that end in the next part; use up each iterator. Raises ``BadContent``."""

    def end(self) -> Records:
        """The last record, if it has no line end; raises as ``feed``."""


class Bounded:
    """Refuses files with a long stretch that has no records, such as a gigabyte of line ends."""

    def __init__(self, decoded: Format) -> None:
        self._format = decoded
        self._stretch_bytes = self._line = 0

    def feed(self, data: bytes) -> Records:
        """The records of this part of the file."""
        self._stretch_bytes += len(data)
        for record in self._format.feed(data):
            self._stretch_bytes, self._line = 0, record.line
            yield record
        if self._stretch_bytes > _STRETCH_BYTES:
            raise BadContent(
                f"{_STRETCH_BYTES:,} bytes have no record, after the one at line {self._line}"
            )

    def end(self) -> Records:
        """The last record."""
        return self._format.end()


class Lines(ABC):
    """One record in each line. Blank lines are skipped."""

    def __init__(self) -> None:
        self._rest = b""
        self._line = 0

    @abstractmethod
    def record(self, number: int, text: bytes) -> Record | Fault:
        """The record of the line with this number."""

    def feed(self, data: bytes) -> Records:
        """The records of the lines that end in this part of the file."""
        data = self._rest + data
        if data.isspace():
            # A shortcut, because a small compressed file may have a gigabyte of line ends.
            self._line += data.count(_END)
            data = data.rpartition(_END)[2]
        *lines, self._rest = data.split(_END)
        _check_length(self._rest, self._line + len(lines) + 1)
        return self._records(lines)

    def end(self) -> Records:
        """The record of the last line."""
        lines, self._rest = [self._rest], b""
        return self._records(lines)

    def _records(self, lines: Sequence[bytes]) -> Records:
        for line in lines:
            self._line += 1
            text = line.removeprefix(BOM) if self._line == 1 else line
            if text and not text.isspace():
                yield self.record(self._line, text)


class JsonLines(Lines):
    """DynamoDB JSON: in each line an object with the member ``Item``."""

    def __init__(self) -> None:
        super().__init__()
        self._decode = msgspec.json.Decoder().decode

    def record(self, number: int, text: bytes) -> Record | Fault:
        """The record of a line of JSON."""
        try:
            members = self._decode(text)
            item = members["Item"]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return Fault(number, text, UNDECODABLE, f"The line is not JSON: {error}")
        except (TypeError, KeyError):
            item = None
        if type(item) is dict:
            return Record(number, text, item, members)
        message = "The line is not an object with the member Item"
        return Fault(number, text, UNDECODABLE, message)


class Csv:
    """CSV as in RFC 4180, with a header that names the attributes.

    The first record is the header, unless the header is given. An empty cell is an attribute that
    the item does not have.
    """

    def __init__(self, types: CsvTypes, delimiter: str, header: Sequence[str] | None) -> None:
        self._types = types
        self._delimiter = delimiter
        self._columns = None if header is None else self._header_columns(header)
        self._rest = b""
        self._line = 0
        self._is_first = True

    def feed(self, data: bytes) -> Records:
        """The records that end in this part of the file."""
        data = self._rest + data
        if self._is_first and len(data) >= len(BOM):
            data = data.removeprefix(BOM)
            self._is_first = False
        end = _last_record_end(data)
        self._rest = data[end:]
        _check_length(self._rest, self._line + data.count(_END, 0, end) + 1)
        return self._records(data[:end])

    def end(self) -> Records:
        """The last record, if it has no line end."""
        data, self._rest = self._rest, b""
        if self._is_first:
            data = data.removeprefix(BOM)
        return self._records(data)

    def _records(self, data: bytes) -> Records:
        # A byte that is not UTF-8 must spoil its own record only.
        decoded = data.decode(errors="surrogateescape")
        lines = [line + "\n" for line in decoded.split("\n")]
        if decoded.endswith("\n") or not decoded:
            lines.pop()
        reader = csv.reader(iter(lines), delimiter=self._delimiter, strict=True)
        first_line = self._line
        while True:
            begin = reader.line_num
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                text = _text(lines, begin, reader.line_num)
                yield Fault(first_line + begin + 1, text, UNDECODABLE, f"Malformed CSV: {error}")
                continue
            if not cells:
                continue
            if self._columns is None:
                self._columns = self._header_columns(cells)
                continue
            text = _text(lines, begin, reader.line_num)
            yield self._record(first_line + begin + 1, text, cells)
        self._line += len(lines)

    def _record(self, line: int, text: bytes, cells: Sequence[str]) -> Record | Fault:
        columns = self._columns
        assert columns is not None
        if len(cells) != len(columns):
            message = f"The record has {len(cells)} columns, the header has {len(columns)}"
            return Fault(line, text, UNDECODABLE, message)
        try:
            "".join(cells).encode()
        except UnicodeEncodeError:
            return Fault(line, text, UNDECODABLE, "The record is not UTF-8")
        try:
            item = {
                column.name: column.value(cell)
                for column, cell in zip(columns, cells, strict=True)
                if cell
            }
        except BadCell as error:
            return Fault(line, text, UNDECODABLE, str(error))
        return Record(line, text, item)

    def _header_columns(self, header: Sequence[str]) -> Sequence[CsvColumn]:
        try:
            return self._types.columns(header)
        except BadHeader as error:
            raise BadContent(str(error)) from None


def _check_length(record: bytes, line: int) -> None:
    if len(record) > _RECORD_BYTES:
        raise BadContent(f"the record at line {line} has no end within {_RECORD_BYTES:,} bytes")


def _last_record_end(data: bytes) -> int:
    """The place after the last line end that is outside of quotes; 0 if there is none."""
    quotes = data.count(_QUOTE)
    end = len(data)
    while (at := data.rfind(_END, 0, end)) >= 0:
        quotes -= data.count(_QUOTE, at + 1, end)
        if quotes % _EVEN == 0:
            return at + 1
        end = at
    return 0


def _text(lines: Sequence[str], begin: int, end: int) -> bytes:
    return "".join(lines[begin:end]).rstrip("\r\n").encode(errors="surrogateescape")

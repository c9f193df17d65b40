"""The process that decodes the files of a large import: ``python -m`` this module.

It uses another core than the server, and a lower priority. Both sides write messages, each with its
length before it. The server sends a job, then the bytes of each file. The process answers with the
rows. It ends when its input is closed, as after the server was killed, also within a part.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Final, TypeAlias

from msgspec import Struct, msgpack

from dynactor.actors.transfers.row_decoder import DecodedRows, RowDecoder
from dynactor.actors.transfers.source_records import reporting
from dynactor.storage.buckets.bucket import BucketError
from dynactor.storage.buckets.decompression import Compression, Content
from dynactor.storage.catalog import TableRecord

LENGTH_BYTES: Final = 4
# The requests of clients come first.
_NICE: Final = 5


class Job(Struct, tag=True, array_like=True):
    """The table and the request of an import."""

    record: TableRecord
    request: dict[str, Any]


class Begin(Struct, tag=True, array_like=True):
    """The beginning of a file."""

    key: str
    compression: Compression


class FilePart(Struct, tag="Part", array_like=True):
    """The next bytes of the file."""

    data: bytes


class End(Struct, tag=True, array_like=True):
    """The end of the file."""


class FileRows(Struct, tag="Rows", array_like=True):
    """Rows of the file."""

    decoded: DecodedRows


class PartTaken(Struct, tag="Taken", array_like=True):
    """A part is decoded, so the process needs another one."""


class Ended(Struct, tag=True, array_like=True):
    """The file is decoded."""

    md5_checksum: str
    size_bytes: int


class FileRefused(Struct, tag="Refused", array_like=True):
    """The file can't be decoded. This is the last message."""

    code: str
    message: str


Input: TypeAlias = Job | Begin | FilePart | End
Output: TypeAlias = FileRows | PartTaken | Ended | FileRefused

_encoder: Final = msgpack.Encoder()
_input: Final = msgpack.Decoder(Input)


def framed(message: Input | Output) -> bytes:
    """The bytes of a message, with its length before it."""
    data = _encoder.encode(message)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def main() -> None:
    """Decode until the input ends."""
    # The server ends this process. A signal to all processes of a terminal or a service must not
    # end the import as failed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICE)
    threading.Thread(target=_end_with_server, daemon=True).start()
    # A closed pipe means that the server has stopped.
    with suppress(BrokenPipeError, EOFError):
        serve(sys.stdin.buffer, sys.stdout.buffer)


def _end_with_server() -> None:
    """End the process when the server closes the input, although parts of it are not read yet."""
    hang_up = select.poll()
    # Without events, only the end of the other side is reported.
    hang_up.register(sys.stdin.fileno(), 0)
    hang_up.poll()
    os._exit(os.EX_OK)


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Answer messages until the end or a refused file; raises ``EOFError`` within a message."""
    decoder: RowDecoder | None = None
    file: _DecodedFile | None = None
    while (message := _read(source)) is not None:
        match message:
            case Job(record, request):
                decoder = RowDecoder(record, request)
                continue
            case Begin(key, compression):
                assert decoder is not None
                file = _DecodedFile(key, compression, decoder)
        assert file is not None
        try:
            with reporting(file.key):
                target.writelines(framed(answer) for answer in file.answers(message))
        except BucketError as error:
            target.write(framed(FileRefused(error.code, error.message)))
            target.flush()
            return
        target.flush()


def _read(source: BinaryIO) -> Input | None:
    head = source.read(LENGTH_BYTES)
    if not head:
        return None
    length = int.from_bytes(head, "big")
    data = source.read(length)
    if len(data) < length:
        raise EOFError
    message: Input = _input.decode(data)
    return message


class _DecodedFile:
    """One file."""

    def __init__(self, key: str, compression: Compression, decoder: RowDecoder) -> None:
        self.key = key
        self._compression: Compression = compression
        self._content: Content | None = None
        self._decoder = decoder

    def answers(self, message: Input) -> Iterator[Output]:
        match message:
            case Begin():
                self._content = Content(self._compression)
                self._decoder.begin()
            case FilePart(data):
                for piece in self._begun.feed(data):
                    yield from map(FileRows, filter(None, self._decoder.feed(piece)))
                yield PartTaken()
            case _:
                self._begun.check_end()
                yield from map(FileRows, filter(None, self._decoder.end()))
                yield Ended(self._begun.md5_checksum, self._begun.size_bytes)

    @property
    def _begun(self) -> Content:
        assert self._content is not None
        return self._content


if __name__ == "__main__":
    main()

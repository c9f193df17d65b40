"""Reads the files of an import, and decodes them in this process or in another one."""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from asyncio import Future
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from typing import Any, Final, NamedTuple

from msgspec import msgpack

from dynactor.actors.transfers.decoding_process import (
    LENGTH_BYTES,
    Begin,
    End,
    Ended,
    FilePart,
    FileRefused,
    FileRows,
    Job,
    Output,
    PartTaken,
    framed,
)
from dynactor.actors.transfers.row_decoder import DecodedRows, RowDecoder
from dynactor.actors.transfers.source_records import reporting
from dynactor.storage.buckets.bucket import Bucket, BucketError
from dynactor.storage.buckets.decompression import Compression, ReadObject
from dynactor.storage.catalog import TableRecord

# While the process decodes one part of a file, it has the next one.
_PARTS_SENT: Final = 2
# The pipe's buffer. The process gets ahead of the commits by twice as much.
_AHEAD_BYTES: Final = 2 * 1024 * 1024

_END: Final = object()

_output: Final = msgpack.Decoder(Output)


class FileSum(NamedTuple):
    """The checksum and the bytes of a whole file."""

    md5_checksum: str
    size_bytes: int


class FileDecoding(ABC):
    """Decodes the files of one import, one after another. ``file_sum`` is that of the last one.

    After an error, close it before the next file.
    """

    # Whether this process does the work.
    runs_here = False
    file_sum = FileSum("", 0)

    @abstractmethod
    def rows(
        self, bucket: Bucket, key: str, compression: Compression
    ) -> AsyncGenerator[DecodedRows, None]:
        """The rows of a file; raises ``BucketError`` if the file can't be read, or is damaged."""

    @abstractmethod
    async def close(self) -> None:
        """Release everything. Never raises."""


class DecodingHere(FileDecoding):
    """Decodes small plain files, for which a process would not be worth its start."""

    runs_here = True

    def __init__(self, record: TableRecord, request: dict[str, Any]) -> None:
        self._decoder = RowDecoder(record, request)

    async def rows(
        self, bucket: Bucket, key: str, compression: Compression
    ) -> AsyncGenerator[DecodedRows, None]:
        """See FileDecoding."""
        decoder, reading = self._decoder, ReadObject(bucket, key, compression)
        with reporting(key):
            decoder.begin()
            async with aclosing(reading.parts()) as parts:
                async for part in parts:
                    async for rows in _in_thread(decoder.feed(part)):
                        yield rows
            async for rows in _in_thread(decoder.end()):
                yield rows
        self.file_sum = FileSum(reading.md5_checksum, reading.size_bytes)

    async def close(self) -> None:
        """See FileDecoding."""


async def _in_thread(pages: Iterator[DecodedRows | None]) -> AsyncGenerator[DecodedRows, None]:
    while (rows := await asyncio.to_thread(next, pages, _END)) is not _END:
        if rows is not None:
            assert isinstance(rows, DecodedRows)
            yield rows


class DecodingProcess(FileDecoding):
    """Decodes files in another process, so that requests don't wait for it."""

    def __init__(self, record: TableRecord, request: dict[str, Any], stopped: Future[None]) -> None:
        """``stopped`` ends the process; then reading fails."""
        self._job = Job(record, request)
        self._process: Process | None = None
        self._stopped = stopped

    async def rows(
        self, bucket: Bucket, key: str, compression: Compression
    ) -> AsyncGenerator[DecodedRows, None]:
        """See FileDecoding."""
        process = self._process
        if process is None:
            process = self._process = await self._start()
            self._stopped.add_done_callback(self._kill)
        sent = process.stdin
        assert sent is not None
        sent.write(framed(Begin(key, compression)))
        async with aclosing(bucket.read(key)) as parts:
            is_more = True
            for _ in range(_PARTS_SENT):
                is_more = is_more and await _send_part(parts, sent)
            while True:
                match await self._received(process):
                    case FileRows(decoded):
                        yield decoded
                    case PartTaken():
                        is_more = is_more and await _send_part(parts, sent)
                    case FileRefused(code, message):
                        raise BucketError(code, message)
                    case Ended(md5_checksum, size_bytes):
                        self.file_sum = FileSum(md5_checksum, size_bytes)
                        return

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dynactor.actors.transfers.decoding_process"),
            stdin=PIPE,
            stdout=PIPE,
            limit=_AHEAD_BYTES,
        )
        assert process.stdin is not None
        process.stdin.write(framed(self._job))
        return process

    @staticmethod
    async def _received(process: Process) -> Output:
        assert process.stdout is not None
        try:
            length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
            message: Output = _output.decode(await process.stdout.readexactly(length))
        except asyncio.IncompleteReadError as error:
            raise BucketError(
                "InternalServerError", "The process that decodes the files has ended"
            ) from error
        return message

    async def close(self) -> None:
        """See FileDecoding."""
        self._stopped.remove_done_callback(self._kill)
        process = self._process
        if process is None:
            return
        self._kill()
        # ``communicate`` closes the pipes of the process, too.
        await process.communicate()
        self._process = None

    def _kill(self, _: object = None) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()


async def _send_part(parts: AsyncGenerator[bytes, None], sent: asyncio.StreamWriter) -> bool:
    """Send the next part of a file, or its end; False after the end."""
    data = await anext(parts, None)
    # Writing keeps the part in memory, until the process takes it.
    sent.write(framed(End() if data is None else FilePart(data)))
    return data is not None

"""Decompresses the objects of buckets."""

from __future__ import annotations

import asyncio
import zlib
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from hashlib import md5
from typing import Any, Final, Literal, Protocol, TypeAlias

from dynactor.storage.buckets.bucket import Bucket

Compression: TypeAlias = Literal["GZIP", "ZSTD", "NONE"]

# A container of gzip.
_GZIP: Final = 31
_MAGIC: Final[dict[Compression, bytes]] = {"GZIP": b"\x1f\x8b", "ZSTD": b"\x28\xb5\x2f\xfd"}
# A small file may have a large content, so it is decompressed in pieces.
PIECE_BYTES: Final = 1024 * 1024
# The decompressor of zstd has no limit for its output. A block of 4 bytes may have 128 KB of
# content (RFC 8878), so this input has up to 2 MB of it.
_ZSTD_BYTES: Final = 64


class BadFile(Exception):
    """The content of a file is damaged, or not compressed as expected."""


class OtherCompression(BadFile):
    """The file is compressed in another way than expected."""


class ZstdMissing(Exception):
    """The package for ZSTD is not installed."""


def detect_compression(head: bytes) -> Compression:
    """The compression of a file with these first bytes."""
    for compression, magic in _MAGIC.items():
        if head.startswith(magic):
            return compression
    return "NONE"


class _Decompressor(Protocol):
    """Decompresses parts of a file, each to small parts of its content."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...

    def check_end(self) -> None:
        """Raise ``BadFile`` if the file ends too early."""


class Content:
    """The content of one object; ``md5_checksum`` and ``size_bytes`` are of the bytes so far."""

    def __init__(self, compression: Compression) -> None:
        """Raises ``ZstdMissing``: the package for ZSTD is not installed."""
        self.size_bytes = 0
        self._compression: Compression = compression
        self._decompressor = _decompressor(compression)
        self._digest = md5(usedforsecurity=False)

    @property
    def md5_checksum(self) -> str:
        """Base64 of the MD5 of the object."""
        return b64encode(self._digest.digest()).decode()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The next pieces of the decompressed content; use up each iterator. Raises ``BadFile``."""
        if not self.size_bytes:
            self._check_magic(data)
        self.size_bytes += len(data)
        self._digest.update(data)
        yield from self._decompressor.feed(data)

    def check_end(self) -> None:
        """Raise ``BadFile`` if the object ends too early."""
        self._decompressor.check_end()

    def _check_magic(self, data: bytes) -> None:
        found = detect_compression(data)
        if found != self._compression:
            raise OtherCompression(
                f"the compression of the file is {found}, but InputCompressionType is "
                f"{self._compression}"
            )


class ReadObject:
    """Reads one object of a bucket, and decompresses it in a thread."""

    def __init__(self, bucket: Bucket, key: str, compression: Compression) -> None:
        self._bucket = bucket
        self._key = key
        self._compression: Compression = compression
        self._content: Content | None = None

    @property
    def size_bytes(self) -> int:
        """The bytes of the object that were read so far."""
        return 0 if self._content is None else self._content.size_bytes

    @property
    def md5_checksum(self) -> str:
        """Base64 of the MD5 of the object, which was read."""
        assert self._content is not None
        return self._content.md5_checksum

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """The decompressed content; raises ``BadFile``, ``BucketError`` or ``ZstdMissing``."""
        content = self._content = Content(self._compression)
        async with aclosing(self._bucket.read(self._key)) as parts:
            async for data in parts:
                pieces = content.feed(data)
                while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                    yield piece
        content.check_end()


def _decompressor(compression: Compression) -> _Decompressor:
    if compression == "GZIP":
        return _Gzip()
    if compression == "ZSTD":
        return _Zstd()
    return _Plain()


class _Plain:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def check_end(self) -> None:
        pass


class _Gzip:
    """A file of gzip may have several members, one after another."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._is_inside = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        piece = b""
        # After a full piece, the decompressor may hold more content, although it has all data.
        while data or len(piece) == PIECE_BYTES:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            try:
                piece = self._member.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise BadFile(f"the gzip data is damaged: {error}") from error
            self._is_inside = not self._member.eof
            data = self._member.unused_data or self._member.unconsumed_tail
            if self._member.eof and not data:
                yield piece
                return
            yield piece

    def check_end(self) -> None:
        if self._is_inside:
            raise BadFile("the gzip data is truncated")


class _Zstd:
    """A file of zstd may have several frames, one after another."""

    def __init__(self) -> None:
        try:
            import zstandard  # noqa: PLC0415 - an extra
        except ImportError:
            raise ZstdMissing from None
        self._library: Any = zstandard
        self._frame: Any = zstandard.ZstdDecompressor().decompressobj()
        self._is_inside = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        content, size_bytes = [], 0
        for at in range(0, len(data), _ZSTD_BYTES):
            rest = data[at : at + _ZSTD_BYTES]
            while rest:
                if self._frame.eof:
                    self._frame = self._library.ZstdDecompressor().decompressobj()
                try:
                    content.append(self._frame.decompress(rest))
                except self._library.ZstdError as error:
                    raise BadFile(f"the zstd data is damaged: {error}") from error
                size_bytes += len(content[-1])
                self._is_inside = not self._frame.eof
                rest = self._frame.unused_data if self._frame.eof else b""
            if size_bytes >= PIECE_BYTES:
                yield from _pieces(b"".join(content))
                content, size_bytes = [], 0
        yield from _pieces(b"".join(content))

    def check_end(self) -> None:
        if self._is_inside:
            raise BadFile("the zstd data is truncated")


def _pieces(content: bytes) -> Iterator[bytes]:
    for at in range(0, len(content), PIECE_BYTES):
        yield content[at : at + PIECE_BYTES]

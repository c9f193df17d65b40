"""The bucket port: the operations that exports and imports need of a place for objects.

A key is a path with slashes, as in S3. No module above this layer knows whether a bucket is a
directory or a service.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NamedTuple, Protocol


class BucketError(Exception):
    """A bucket can't be used. ``code`` is the FailureCode of the export or import."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class StoredObject(NamedTuple):
    """An object of a bucket."""

    key: str
    size_bytes: int


class ObjectWriter(Protocol):
    """Writes one object, which appears under its key when it is complete."""

    async def write(self, data: bytes) -> None:
        """Append data; raises ``BucketError``."""

    async def close(self) -> str:
        """Complete the object durably; returns its entity tag.

        After ``BucketError`` the object does not exist.
        """

    async def abort(self) -> None:
        """Drop the object. Has no effect after ``close``."""


class Bucket(Protocol):
    """A place for objects."""

    @property
    def most_object_bytes(self) -> int:
        """Content of an object, before compression, after which a writer should begin another."""

    async def objects(self, prefix: str) -> list[StoredObject]:
        """The objects whose keys begin with this prefix, sorted by key; raises ``BucketError``."""

    def read(self, key: str) -> AsyncGenerator[bytes, None]:
        """The content of an object, in parts; raises ``BucketError`` also if it does not exist."""

    async def put(self, key: str, data: bytes) -> None:
        """Write a small object durably, in place of an earlier one; raises ``BucketError``."""

    async def writer(self, key: str) -> ObjectWriter:
        """Begin a large object; raises ``BucketError``."""


async def read_whole(bucket: Bucket, key: str) -> bytes:
    """The content of a small object; raises ``BucketError`` also if it does not exist."""
    return b"".join([part async for part in bucket.read(key)])

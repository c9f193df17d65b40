"""A bucket in S3, or in a service with the same protocol.

Each object is written by one request, so an upload that is abandoned leaves nothing in the bucket.
Credentials, region and endpoint come from the usual AWS variables of the server's environment.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from dynactor.storage.buckets.bucket import BucketError, ObjectWriter, StoredObject

# Objects are in memory until they are written.
_MOST_OBJECT_BYTES: Final = 32 * 1024 * 1024
_READ_BYTES: Final = 1024 * 1024
_LIST_OBJECTS: Final = 1_000
_RETRIES: Final = 5
_RETRY_SECONDS: Final = 60
_TIMEOUT_SECONDS: Final = 120
# The second has precedence.
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


class S3Missing(Exception):
    """The package for S3 is not installed."""


class S3Bucket:
    """The objects of a bucket whose keys begin with a prefix."""

    most_object_bytes = _MOST_OBJECT_BYTES

    def __init__(self, name: str, prefix: str = "") -> None:
        """No request is made yet; raises ``S3Missing`` without the package."""
        try:
            import obstore  # noqa: PLC0415 - an extra
            from obstore import exceptions, store  # noqa: PLC0415
        except ImportError:
            raise S3Missing from None
        self._library: Any = obstore
        self._errors: Any = exceptions
        self._store: Any = store.S3Store(
            name,
            prefix=prefix.strip("/") or None,
            client_options={
                "allow_http": _is_plain_http(),
                "timeout": timedelta(seconds=_TIMEOUT_SECONDS),
            },
            retry_config={
                "max_retries": _RETRIES,
                "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
            },
        )

    async def objects(self, prefix: str) -> list[StoredObject]:
        """The objects whose keys begin with this prefix, sorted by key; raises as the port."""
        # The library lists folders, but the end of a prefix may be the beginning of a name.
        folder = prefix.rpartition("/")[0]
        found = []
        with self._reporting():
            pages = self._library.list(self._store, folder or None, chunk_size=_LIST_OBJECTS)
            async for page in pages:
                found += [
                    StoredObject(each["path"], each["size"])
                    for each in page
                    if each["path"].startswith(prefix)
                ]
        return sorted(found)

    async def read(self, key: str) -> AsyncGenerator[bytes, None]:
        """The content of an object, in parts; raises as the port."""
        with self._reporting():
            answer = await self._library.get_async(self._store, key)
            async for part in answer.stream(min_chunk_size=_READ_BYTES):
                yield bytes(part)

    async def put(self, key: str, data: bytes) -> None:
        """Write an object durably, in place of an earlier one; raises as the port."""
        await self._put(key, data)

    async def writer(self, key: str) -> ObjectWriter:
        """Begin an object of at most ``most_object_bytes``."""
        return _BufferedWriter(self, key)

    async def _put(self, key: str, data: bytes) -> str:
        with self._reporting():
            # Otherwise an abandoned upload of several parts would stay in the bucket.
            answer = await self._library.put_async(self._store, key, data, use_multipart=False)
        return (answer["e_tag"] or "").strip('"')

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Report the library's errors as errors of the bucket."""
        denied = (self._errors.PermissionDeniedError, self._errors.UnauthenticatedError)
        try:
            yield
        except (FileNotFoundError, ValueError, self._errors.BaseError) as error:
            # ValueError: the key has a part that no path can have, such as "..".
            text = str(error)
            if "NoSuchBucket" in text:
                code, message = "S3NoSuchBucket", "The specified bucket does not exist"
            elif isinstance(error, FileNotFoundError):
                code, message = "S3NoSuchKey", "The specified key does not exist."
            elif isinstance(error, denied):
                code, message = "S3AccessDenied", "Access Denied"
            else:
                code, message = "S3InternalError", text.partition("\n")[0]
            raise BucketError(code, message) from error


class _BufferedWriter:
    """Collects an object in memory, and writes it when it is complete."""

    def __init__(self, bucket: S3Bucket, key: str) -> None:
        self._bucket = bucket
        self._key = key
        self._parts: list[bytes] = []

    async def write(self, data: bytes) -> None:
        self._parts.append(data)

    async def close(self) -> str:
        """Write the object; returns its entity tag."""
        parts, self._parts = self._parts, []
        return await self._bucket._put(self._key, b"".join(parts))  # noqa: SLF001 - of one idea

    async def abort(self) -> None:
        self._parts = []


def _is_plain_http() -> bool:
    found = [os.environ[name] for name in _ENDPOINTS if os.environ.get(name)]
    return bool(found) and urlsplit(found[-1]).scheme == "http"

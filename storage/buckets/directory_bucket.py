"""A bucket in a directory: each object is a file, and each key is its path.

Invariant: no operation reads or writes outside of the directory, also not through a symbolic link.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import md5
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final

from dynactor.storage.buckets.bucket import BucketError, ObjectWriter, StoredObject
from dynactor.storage.data_directory import sync_directory
from dynactor.storage.disk_sync import sync_file

_MOST_OBJECT_BYTES: Final = 256 * 1024 * 1024
_READ_BYTES: Final = 1024 * 1024
# Files of objects that are not complete. Listings leave them out.
_UNFINISHED: Final = ".dynactor-unfinished-"


class DirectoryBucket:
    """The objects below a directory. The directory must exist; folders in it are made.

    ``umask`` applies to new files and folders instead of the process's: other programs read
    exports, and the data of the server is private.
    """

    most_object_bytes = _MOST_OBJECT_BYTES

    def __init__(self, root: Path, umask: int | None = None) -> None:
        self._root = root
        self._umask = umask

    async def objects(self, prefix: str) -> list[StoredObject]:
        """The objects whose keys begin with this prefix, sorted by key; raises as the port."""
        return await asyncio.to_thread(self._objects, prefix)

    def _objects(self, prefix: str) -> list[StoredObject]:
        with _reporting():
            self._check_root()
            found = []
            for folder, _, names in os.walk(self._root):
                for name in names:
                    path = Path(folder, name)
                    key = path.relative_to(self._root).as_posix()
                    is_object = key.startswith(prefix) and not name.startswith(_UNFINISHED)
                    if is_object and not path.is_symlink():
                        found.append(StoredObject(key, path.stat().st_size))
            return sorted(found)

    async def read(self, key: str) -> AsyncGenerator[bytes, None]:
        """The content of an object, in parts; raises as the port."""
        file = _LazyFile(partial(self._open, key))
        try:
            while part := await asyncio.to_thread(_read_part, file):
                yield part
        finally:
            file.close(waits=False)

    def _open(self, key: str) -> BinaryIO:
        self._check_root()
        return self._path(key).open("rb")

    async def put(self, key: str, data: bytes) -> None:
        """Write an object durably, in place of an earlier one; raises as the port."""
        writer = await self.writer(key)
        try:
            await writer.write(data)
            await writer.close()
        finally:
            await writer.abort()

    async def writer(self, key: str) -> ObjectWriter:
        """Begin an object; raises as the port."""
        return await asyncio.to_thread(self._begin, key)

    def _begin(self, key: str) -> _FileWriter:
        with _reporting():
            self._check_root()
            path = self._path(key)
            self._make_folder(path.parent)
            # A repeated export replaces the files that it left behind at a crash. Open a new file,
            # because an existing one may be a symbolic link.
            unfinished = path.parent / f"{_UNFINISHED}{path.name}"
            unfinished.unlink(missing_ok=True)
            return _FileWriter(path, partial(self._open_new, unfinished), unfinished)

    def _make_folder(self, folder: Path) -> None:
        if folder.exists():
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        if self._umask is not None:
            folder.chmod(0o777 & ~self._umask)

    def _open_new(self, path: Path) -> BinaryIO:
        file = path.open("xb")
        if self._umask is not None:
            os.fchmod(file.fileno(), 0o666 & ~self._umask)
        return file

    def _check_root(self) -> None:
        if not self._root.is_dir():
            raise BucketError("S3NoSuchBucket", "The specified bucket does not exist")

    def _path(self, key: str) -> Path:
        path = self._root / key
        is_plain = all(part not in ("", ".", "..") for part in key.split("/"))
        if not is_plain or not path.resolve().is_relative_to(self._root.resolve()):
            raise BucketError("S3AccessDenied", f"The key {key} is not in the bucket's directory")
        return path


class _LazyFile:
    """A file that the first thread to use it opens.

    A thread can't be canceled: it may still open the file after its caller was canceled and has
    closed the file.
    """

    def __init__(self, open_file: Callable[[], BinaryIO]) -> None:
        self._open_file = open_file
        self._file: BinaryIO | None = None
        self._is_closed = False
        self._lock = Lock()

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        try:
            with self._lock:
                if self._is_closed:
                    raise ValueError("the file is closed")
                if self._file is None:
                    self._file = self._open_file()
                yield self._file
        finally:
            if self._is_closed:
                self.close(waits=False)

    def close(self, *, waits: bool) -> None:
        """Close the file, now or, without waiting, after the thread that uses it."""
        self._is_closed = True
        if self._lock.acquire(blocking=waits):
            try:
                if self._file is not None:
                    self._file.close()
            finally:
                self._lock.release()


class _FileWriter:
    """Writes a file under another name, and renames the file when it is complete."""

    def __init__(self, path: Path, open_new: Callable[[], BinaryIO], unfinished: Path) -> None:
        """``open_new`` opens the file of the other name, ``unfinished``."""
        self._path = path
        self._unfinished = unfinished
        self._file = _LazyFile(open_new)
        self._digest = md5(usedforsecurity=False)

    async def write(self, data: bytes) -> None:
        await asyncio.to_thread(self._write, data)

    def _write(self, data: bytes) -> None:
        with _reporting(), self._file.opened() as file:
            self._digest.update(data)
            file.write(data)

    async def close(self) -> str:
        """Complete the file durably; returns the tag of an object that S3 got in one part."""
        await asyncio.to_thread(self._close)
        return f"{md5(self._digest.digest(), usedforsecurity=False).hexdigest()}-1"

    def _close(self) -> None:
        with _reporting():
            with self._file.opened() as file:
                file.flush()
                sync_file(file.fileno())
            self._file.close(waits=True)
            self._unfinished.rename(self._path)
            sync_directory(self._path.parent)

    async def abort(self) -> None:
        await asyncio.to_thread(self._abort)

    def _abort(self) -> None:
        # Closing a file on a full disk writes its buffer, and fails again.
        with _reporting(is_ignored=True):
            try:
                self._file.close(waits=True)
            finally:
                self._unfinished.unlink(missing_ok=True)


def _read_part(file: _LazyFile) -> bytes:
    with _reporting(), file.opened() as opened:
        return opened.read(_READ_BYTES)


@contextmanager
def _reporting(*, is_ignored: bool = False) -> Iterator[None]:
    """Report the operating system's errors as errors of the bucket."""
    try:
        yield
    except FileNotFoundError as error:
        if not is_ignored:
            raise BucketError("S3NoSuchKey", "The specified key does not exist.") from error
    except PermissionError as error:
        if not is_ignored:
            raise BucketError("S3AccessDenied", f"Access Denied: {error}") from error
    except (OSError, ValueError) as error:
        # ValueError: the key has a character that no path can have.
        if not is_ignored:
            raise BucketError("S3InternalError", str(error)) from error

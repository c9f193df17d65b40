"""Simulates power cuts of a disk, for tests of durability.

Killing a process proves little, because its writes stay in the page cache, synced or not. So a
small library is preloaded into the server and records the data that each completed sync covered.
After the server was killed, ``cut`` reverts the data directory to that data, as a power cut would:

    power = PowerLoss(work_directory, data_directory)    # both on one file system
    server = start_server(data_directory, env={**os.environ, **power.environment()})
    ...
    server.kill(); server.wait()
    power.cut(Random(7))
    # start the server again, with power.environment() again, and compare

The model: a file keeps its content from the start of its last completed sync. With a ``Random``, it
may also keep some of the first later writes, with a torn end; an in-place write is torn at a write
or a sector. A name (of a new, renamed or deleted file) is as it was at the start of its directory's
last completed sync. With a ``Random``, it may be as it was at the end. A file's sync does not make
its name durable. Truncation is always kept.

The same library delays syncs, makes them fail, and fills the disk while the server runs:
``hold_syncs``, ``release_syncs``, ``fail_syncs``, ``nearly_fill_disk`` and so on.

Not simulated: reordered writes inside one file, and mapped memory. One process at a time.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from random import Random
from struct import Struct
from typing import NamedTuple, TypeAlias

from tests.support.stores.preloaded import library

_POLL_SECONDS = 0.001
_OVERWRITTEN_HEAD = Struct("=QQQ")
# The unit that a disk writes atomically.
_SECTOR_BYTES = 512
_SOURCE = Path(__file__).with_suffix(".c")

# The content of each synced directory: from its inode to names and their inodes.
Names: TypeAlias = dict[int, dict[str, int]]


class Synced(NamedTuple):
    """The data that a file's last sync covered.

    ``length`` is the file's length when that sync began. ``overwritten_end`` is the length of the
    library's file ``overwritten`` at that time. The file has a record of each in-place write, so
    the sync covered the writes whose records start before this length.
    """

    length: int = 0
    overwritten_end: int = 0


class Overwritten(NamedTuple):
    """The data that an in-place write replaced, and the place of its record."""

    place: int
    offset: int
    old: bytes


class _Switch(IntEnum):
    """The bytes of the file shared with the library, in its order."""

    HOLD_SYNCS = 0
    FAIL_SYNCS = 1
    FULL_PERCENT = 2
    FULL_REPORTED = 3
    DELAY_MILLISECONDS = 4
    HELD = 5


class PowerLoss:
    """Cuts the power of one data directory; ``work_directory`` is for its own files."""

    def __init__(self, work_directory: Path, data_directory: Path) -> None:
        self._work = work_directory.absolute()
        self._data = data_directory.absolute()
        self._trace = self._work / "trace"
        self._overwritten = self._work / "overwritten"
        self._graveyard = self._work / "graveyard"
        self._switches = self._work / "switches"
        self._library = library(_SOURCE)
        self._data.mkdir(parents=True, exist_ok=True)
        self._work.mkdir(parents=True, exist_ok=True)
        self._switches.write_bytes(bytes(len(_Switch)))
        self._take_as_durable()

    def environment(self) -> dict[str, str]:
        """The environment that the server's process needs."""
        return {
            "LD_PRELOAD": str(self._library),
            "POWER_LOSS_DATA_DIRECTORY": str(self._data),
            "POWER_LOSS_WORK_DIRECTORY": str(self._work),
        }

    def cut(self, random: Random | None = None) -> None:
        """Remove everything that no completed sync covered. The server must be dead.

        Without ``random``, as much as possible is lost; with it, a random part.
        """
        synced, names = self._read_trace()
        overwritten = self._read_overwritten()
        staging = self._work / "staging"
        staging.mkdir()
        for path in [*_entries_below(self._data), *self._graveyard.iterdir()]:
            staged = staging / str(path.lstat().st_ino)
            if not staged.exists():
                os.link(path, staged, follow_symlinks=False)
        if random is not None and random.random() < 0.5:  # the journal had been written
            names = _names_below(self._data)
        root = self._data.stat().st_ino
        for path in self._data.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._restore(self._data, names.get(root, {}), names, staging)
        for staged in staging.iterdir():
            if staged.is_symlink():
                continue
            inode = int(staged.name)
            covered = synced.get(inode, Synced())
            later = [
                each for each in overwritten.get(inode, []) if each.place >= covered.overwritten_end
            ]
            kept = 0 if random is None else random.randint(0, len(later))
            _write_back(staged, later, kept, random)
            # The model keeps appended data only if it keeps all in-place writes.
            _truncate(staged, covered.length, random if kept == len(later) else None)
        shutil.rmtree(staging)
        self._take_as_durable()

    def hold_syncs(self) -> None:
        """Block every sync until ``release_syncs``."""
        self._turn(_Switch.HELD, 0)
        self._turn(_Switch.HOLD_SYNCS, 1)

    def is_holding(self) -> bool:
        """Whether a sync is being held."""
        return self._switches.read_bytes()[_Switch.HELD] == 1

    def wait_until_held(self) -> None:
        """Wait until a sync is being held."""
        while not self.is_holding():
            time.sleep(_POLL_SECONDS)

    def release_syncs(self) -> None:
        """Let held and later syncs continue."""
        self._turn(_Switch.HOLD_SYNCS, 0)

    def fail_syncs(self) -> None:
        """Make every sync fail with EIO, including held ones once they are released."""
        self._turn(_Switch.FAIL_SYNCS, 1)

    def repair_syncs(self) -> None:
        """Let syncs succeed again."""
        self._turn(_Switch.FAIL_SYNCS, 0)

    def delay_syncs(self, milliseconds: int) -> None:
        """Make every sync take this much longer (at most 255), as on a slow disk."""
        self._turn(_Switch.DELAY_MILLISECONDS, milliseconds)

    def nearly_fill_disk(self) -> None:
        """Report no free space; writes still succeed, as they do within a reserve."""
        self._turn(_Switch.FULL_REPORTED, 1)

    def fill_disk(self, percent: int = 100) -> None:
        """Refuse a share of the writes with ENOSPC, while free space is reported.

        Refusing all simulates a disk that filled up right after the check. Refusing some simulates
        a disk on which other processes use and free space.
        """
        self._turn(_Switch.FULL_PERCENT, percent)

    def free_disk(self) -> None:
        """Free the disk."""
        self._turn(_Switch.FULL_REPORTED, 0)
        self._turn(_Switch.FULL_PERCENT, 0)

    def _turn(self, switch: _Switch, value: int) -> None:
        with self._switches.open("r+b") as file:
            file.seek(switch)
            file.write(bytes([value]))

    def _take_as_durable(self) -> None:
        """Start a new trace; the present content of the data directory counts as synced."""
        shutil.rmtree(self._graveyard, ignore_errors=True)
        self._graveyard.mkdir()
        lines = []
        for path in _files_below(self._data):
            status = path.stat()
            lines.append(b"S %d 0 %d 0\n" % (status.st_ino, status.st_size))
        for inode, entries in _names_below(self._data).items():
            fields = [b"%d:%s" % (entry, os.fsencode(name)) for name, entry in entries.items()]
            lines.append(b"\0".join([b"D %d 0" % inode, *fields]) + b"\0\n")
        self._trace.write_bytes(b"".join(lines))
        self._overwritten.write_bytes(b"")

    def _read_overwritten(self) -> dict[int, list[Overwritten]]:
        """The replaced data of each file, by its inode, oldest first."""
        content = self._overwritten.read_bytes()
        found: dict[int, list[Overwritten]] = {}
        place = 0
        # The last record may be torn, because the process was killed before it made that write.
        while place + _OVERWRITTEN_HEAD.size <= len(content):
            inode, offset, length = _OVERWRITTEN_HEAD.unpack_from(content, place)
            start = place + _OVERWRITTEN_HEAD.size
            if start + length > len(content):
                break
            old = content[start : start + length]
            found.setdefault(inode, []).append(Overwritten(place, offset, old))
            place = start + length
        return found

    def _read_trace(self) -> tuple[dict[int, Synced], Names]:
        """The synced state by inode, and synced names with their inodes by directory's inode."""
        synced: dict[int, Synced] = {}
        names: Names = {}
        latest: dict[int, int] = {}
        for line in self._trace.read_bytes().split(b"\n")[:-1]:
            head, *fields = line.removesuffix(b"\0").split(b"\0")
            kind, *numbers = head.split(b" ")
            inode, began, *rest = map(int, numbers)
            # With concurrent syncs, the one that began first may have ended last.
            if began < latest.get(inode, 0):
                continue
            latest[inode] = began
            if kind == b"S":
                synced[inode] = Synced(*rest)
            else:
                entries = [field.split(b":", 1) for field in fields]
                names[inode] = {os.fsdecode(name): int(entry) for entry, name in entries}
        return synced, names

    def _restore(
        self, directory: Path, entries: dict[str, int], names: Names, staging: Path
    ) -> None:
        for name, inode in entries.items():
            staged = staging / str(inode)
            if staged.exists():
                os.link(staged, directory / name, follow_symlinks=False)
            else:
                (directory / name).mkdir()
                self._restore(directory / name, names.get(inode, {}), names, staging)


def _files_below(directory: Path) -> Iterator[Path]:
    return (path for path in _entries_below(directory) if not path.is_symlink())


def _entries_below(directory: Path) -> Iterator[Path]:
    """Files and symbolic links."""
    return (path for path in directory.rglob("*") if path.is_file() or path.is_symlink())


def _names_below(directory: Path) -> Names:
    directories = [directory, *(path for path in directory.rglob("*") if path.is_dir())]
    return {
        path.stat().st_ino: {entry.name: entry.inode() for entry in os.scandir(path)}
        for path in directories
    }


def _write_back(
    path: Path, overwritten: list[Overwritten], kept: int, random: Random | None
) -> None:
    """Restore replaced data, except for the first writes, which are kept, and part of one."""
    if kept == len(overwritten):
        return
    with path.open("r+b") as file:
        for each in reversed(overwritten[kept + 1 :]):
            file.seek(each.offset)
            file.write(each.old)
        torn = overwritten[kept]
        first = _SECTOR_BYTES - torn.offset % _SECTOR_BYTES
        ends = [0, *range(first, len(torn.old), _SECTOR_BYTES)]
        written = 0 if random is None else random.choice(ends)
        file.seek(torn.offset + written)
        file.write(torn.old[written:])


def _truncate(path: Path, synced_length: int, random: Random | None) -> None:
    length = path.stat().st_size
    if length > synced_length:
        kept = synced_length if random is None else random.randint(synced_length, length)
        os.truncate(path, kept)

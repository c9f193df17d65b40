"""A disk with sectors that can't be read: reads that meet them fail with EIO.

    sectors = BadSectors(tmp_path / "sectors")
    with running_server(data_dir=data, environment=sectors.environment()) as server:
        sectors.spoil(table_file, 4096, 8192)
        ...
        sectors.repair()

What a process has in its own memory is not read again, and is not spoiled.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct

from tests.support.stores.preloaded import library

_BAD = Struct("=QQQ")
_SOURCE = Path(__file__).with_suffix(".c")


class BadSectors:
    """One range of one file at a time; ``path`` is a file of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._library = library(_SOURCE)
        self.repair()

    def environment(self) -> dict[str, str]:
        """What the server's process needs in its environment."""
        return {"LD_PRELOAD": str(self._library), "BAD_SECTORS": str(self._path)}

    def spoil(self, file: Path, offset: int, length_bytes: int) -> None:
        """From now on this range of a file can't be read."""
        self._set(_BAD.pack(file.stat().st_ino, offset, length_bytes))

    def repair(self) -> None:
        """Everything can be read again."""
        self._set(bytes(_BAD.size))

    def _set(self, content: bytes) -> None:
        # In place: the process has it in its memory.
        if not self._path.exists():
            self._path.touch()
        with self._path.open("r+b") as shared:
            shared.write(content)

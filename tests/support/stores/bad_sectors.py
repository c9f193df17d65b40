"""A disk with unreadable sectors: reads of them fail with EIO.

    sectors = BadSectors(tmp_path / "sectors")
    with running_server(data_dir=data, environment=sectors.environment()) as server:
        sectors.spoil(table_file, 4096, 8192)
        ...
        sectors.repair()

Data that a process has in memory is not read again, so it is not affected.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct

from tests.support.stores.preloaded import library

_BAD = Struct("=QQQ")
_SOURCE = Path(__file__).with_suffix(".c")


class BadSectors:
    """Makes one range of one file unreadable.

    The preloaded library reads the range from ``path``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._library = library(_SOURCE)
        self.repair()

    def environment(self) -> dict[str, str]:
        """The environment that the server's process needs."""
        return {"LD_PRELOAD": str(self._library), "BAD_SECTORS": str(self._path)}

    def spoil(self, file: Path, offset: int, length_bytes: int) -> None:
        """Make this range of a file unreadable."""
        self._set(_BAD.pack(file.stat().st_ino, offset, length_bytes))

    def repair(self) -> None:
        """Make everything readable again."""
        self._set(bytes(_BAD.size))

    def _set(self, content: bytes) -> None:
        # Don't replace the file: the server's process has mapped it into memory.
        if not self._path.exists():
            self._path.touch()
        with self._path.open("r+b") as shared:
            shared.write(content)

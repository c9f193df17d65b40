"""Reads a data directory's rows, packs it into an archive, and renders the expected values."""

from __future__ import annotations

import json
import lzma
import shutil
import tarfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import msgpack
from rocksdict import AccessType, Options, Rdict


def stored_rows(directory: Path) -> dict[bytes, bytes]:
    """All rows of a directory that no server uses; a copy is opened."""
    with TemporaryDirectory() as folder:
        copy = shutil.copytree(directory / "rocksdb", Path(folder) / "rocksdb")
        access = AccessType.read_only(error_if_log_file_exist=False)
        with closing(Rdict(str(copy), Options(raw_mode=True), access_type=access)) as rows:
            return dict(rows.items())


def phases(rows: dict[bytes, bytes]) -> dict[str, str]:
    """The phase of the table Restoring, and the status of each backup."""
    restoring = msgpack.decode(rows[b"\x01Restoring"])["definition"]
    backups = [msgpack.decode(row) for key, row in rows.items() if key[:1] == b"\x0d"]
    return {"Restoring": restoring["restoration"]["phase"]} | {
        backup["name"]: backup["status"] for backup in backups
    }


def pack(directory: Path, archive: Path) -> None:
    """Pack a directory without its lock and the engine's own log of events."""

    def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        name = Path(entry.name).name
        if name == "lock" or name.startswith("LOG"):
            return None
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(archive, "w:xz", preset=lzma.PRESET_EXTREME | 9) as packed:
        packed.add(directory, "directory", filter=kept)


def rendered(value: Any, depth: int) -> str:
    """JSON with a line for each member and element down to a depth."""
    if not depth or not value or not isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        members = [f"{json.dumps(each)}: {rendered(value[each], depth - 1)}" for each in value]
        return "{\n" + ",\n".join(members) + "\n}"
    return "[\n" + ",\n".join(rendered(each, depth - 1) for each in value) + "\n]"

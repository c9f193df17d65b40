"""The settings of the store: its place, and copies of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from dynactor.api.http.server_identity import StoreKind
from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.limits import MIB
from dynactor.model.option import Option, OptionGroup
from dynactor.model.secret_fields import SecretFields


def _cache_bytes(mib: int | None) -> int | None:
    if mib is None:
        return None
    if mib < 1:
        raise ConfigurationError(
            "--cache-mib must be at least 1: without the option, the server chooses a size"
        )
    return mib * MIB


class StoreSettings(SecretFields, frozen=True):
    """The place of the data, and copies of it."""

    # The URLs may have passwords.
    secret_fields = frozenset({"url", "read_url"})

    data_dir: Annotated[Path | None, Option("--data-dir", OptionGroup.DATA)] = None
    """Directory of the data. Default: dynactor under $XDG_DATA_HOME or ~/.local/share."""

    in_memory: Annotated[bool, Option("--in-memory", OptionGroup.DATA)] = False
    """Keep data in memory only. The data is lost when the server stops."""

    url: Annotated[str | None, Option("--store", OptionGroup.DATA)] = None
    """URL of a PostgreSQL database that keeps the data, such as postgresql://user@host/dynactor.
    Needs the extra dynactor[postgresql]."""

    read_url: Annotated[str | None, Option("--read-store", OptionGroup.DATA)] = None
    """URL of a hot standby of --store, which answers eventually consistent reads. While it can't be
    used, the primary answers them."""

    cache_bytes: Annotated[
        int | None, Option("--cache-mib", OptionGroup.DATA, _cache_bytes, int | None)
    ] = None
    """Memory for cached data, in MiB, at least 1. Default: a sixteenth of the memory of the machine
    or control group, at least 256, at most a quarter."""

    backup_dir: Annotated[Path | None, Option("--backup-dir", OptionGroup.COPIES)] = None
    """Directory for the backups of dynactor backup, on the same file system as the data."""

    seed: Annotated[Path | None, Option("--seed", OptionGroup.COPIES, place=2)] = None
    """Directory with a folder for each table: table.json and data files, as dynactor export writes
    them. Tables that do not exist are filled before the server answers."""

    serve_backup: Annotated[bool, Option("--serve-backup", OptionGroup.COPIES, place=3)] = False
    """Allow a backup as --data-dir. The server changes the backup, so it is no longer one."""

    @property
    def kind(self) -> StoreKind:
        """The kind of store that keeps the data."""
        if self.url is not None:
            return "postgresql"
        return "memory" if self.in_memory else "disk"

    @property
    def directory(self) -> Path | None:
        """The directory of the data on disk, else None."""
        if self.kind != "disk":
            return None
        return (self.data_dir or _default_directory()).expanduser().absolute()

    @property
    def tls_directory(self) -> Path:
        """The directory of a certificate for development; data in memory has one of its own."""
        data = self.directory
        if data is not None:
            return data / "tls"
        return _default_directory().with_name("dynactor-tls").expanduser().absolute()

    @property
    def shown(self) -> str:
        """The location of the data, for messages, without the password of a database."""
        if self.url is not None:
            from dynactor.storage.postgresql.address import parse_address  # noqa: PLC0415

            return parse_address(self.url).shown
        directory = self.directory
        return "memory, lost when the server stops" if directory is None else str(directory)


def _default_directory() -> Path:
    """The default data directory, by the XDG base directory specification."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "dynactor"

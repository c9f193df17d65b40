"""Reads the access keys again when their file changes."""

from __future__ import annotations

from pathlib import Path

import structlog

from dynactor.api.http.access_keys import BadCredentialsFile, read_access_keys
from dynactor.api.http.signature import Signatures
from dynactor.api.serve.file_watch import FileWatch

_log = structlog.get_logger(__name__)


def key_watch(path: Path, signatures: Signatures) -> FileWatch | None:
    """A watch that replaces the keys of ``signatures``; None for a pipe, which is read once."""
    if not path.is_file():
        return None

    def reload() -> None:
        try:
            keys = read_access_keys(path)
        except BadCredentialsFile as error:
            _log.warning("access_keys_unchanged", reason=str(error))
            return
        signatures.replace(keys)
        _log.info("access_keys_read", count=len(keys))

    watch = FileWatch(lambda: (path,), reload)
    # The file may have changed since the options were read.
    reload()
    return watch

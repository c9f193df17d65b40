"""Reads the access keys and the policies again when their files change."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from dynactor.api.access.identities import IdentityRegistry
from dynactor.api.access.policy_files import (
    BadPolicyFile,
    open_identities,
    policy_paths,
    read_identities,
    role_paths,
)
from dynactor.api.http.access_keys import BadCredentialsFile, access_keys, read_profiles
from dynactor.api.http.key_limits import KeyLimits
from dynactor.api.http.signature import Signatures
from dynactor.api.serve.file_watch import FileWatch

# Permissions of the group and of other users.
_OTHERS: Final = 0o077

_log = structlog.get_logger(__name__)


def key_watch(
    path: Path,
    signatures: Signatures,
    policy_dir: Path | None = None,
    registry: IdentityRegistry | None = None,
    limits: KeyLimits | None = None,
) -> FileWatch | None:
    """A watch that replaces the keys of ``signatures``, the users of ``registry`` and ``limits``.

    A broken file changes neither keys nor policies. None for a pipe, which is read once.
    """
    if not path.is_file():
        return None

    def paths() -> Iterable[Path]:
        if policy_dir is None:
            return (path,)
        return (path, *policy_paths(policy_dir), *role_paths(policy_dir))

    def reload() -> None:
        try:
            profiles = read_profiles(path)
            identities = (
                open_identities(profiles)
                if policy_dir is None
                else read_identities(profiles, policy_dir)
            )
        except (BadCredentialsFile, BadPolicyFile) as error:
            _log.warning("access_keys_unchanged", reason=str(error))
            return
        _warn_of_readers(path)
        signatures.replace(access_keys(profiles))
        if registry is not None:
            registry.replace(identities)
        if limits is not None:
            limits.replace(profiles)
        _log.info("access_keys_read", count=len(profiles))

    watch = FileWatch(paths, reload)
    # The files may have changed since the options were read.
    reload()
    return watch


def _warn_of_readers(path: Path) -> None:
    # The file may have been deleted since it was read.
    with suppress(OSError):
        if path.stat().st_mode & _OTHERS:
            _log.warning(
                "access_keys_exposed",
                reason=f"other users of the machine may read the secrets: chmod 600 {path}",
            )

"""Reads the access keys and the policies again when their files change."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import structlog

from dynactor.api.access.identities import IdentityRegistry
from dynactor.api.access.policy_files import (
    BadPolicyFile,
    open_identities,
    policy_paths,
    read_identities,
    role_paths,
)
from dynactor.api.http.key_limits import KeyLimits
from dynactor.api.keys.access_keys import BadCredentialsFile, access_keys, read_profiles
from dynactor.api.keys.signature import Signatures
from dynactor.api.serve.file_watch import FileWatch

_log = structlog.get_logger(__name__)


def key_watch(
    path: Path,
    signatures: Signatures,
    policy_dir: Path | None = None,
    registry: IdentityRegistry | None = None,
    limits: KeyLimits | None = None,
    *,
    secret: str | None = None,
) -> FileWatch | None:
    """A watch that replaces the keys of ``signatures``, the users of ``registry`` and ``limits``.

    ``secret`` decrypts an encrypted file. A broken file changes neither keys nor policies, nor does
    one that others may read. None for a pipe, which is read once.
    """
    if not path.is_file():
        return None

    def paths() -> Iterable[Path]:
        if policy_dir is None:
            return (path,)
        return (path, *policy_paths(policy_dir), *role_paths(policy_dir))

    def reload() -> None:
        try:
            profiles = read_profiles(path, secret)
            identities = (
                open_identities(profiles)
                if policy_dir is None
                else read_identities(profiles, policy_dir)
            )
        except (BadCredentialsFile, BadPolicyFile) as error:
            _log.warning("access_keys_unchanged", reason=str(error))
            return
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

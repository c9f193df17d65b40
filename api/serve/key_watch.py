"""Reads the access keys and the policies again when their files change."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import structlog

from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.policy_files import BadPolicyFile, policy_paths, read_grants
from dynactor.api.http.access_keys import BadCredentialsFile, access_keys, read_profiles
from dynactor.api.http.signature import Signatures
from dynactor.api.serve.file_watch import FileWatch

_log = structlog.get_logger(__name__)


def key_watch(
    path: Path,
    signatures: Signatures,
    policy_dir: Path | None = None,
    access_control: AccessControl | None = None,
) -> FileWatch | None:
    """A watch that replaces the keys of ``signatures`` and the policies of ``access_control``.

    A broken file changes neither keys nor policies. None for a pipe, which is read once.
    """
    if not path.is_file():
        return None

    def paths() -> Iterable[Path]:
        return (path, *(() if policy_dir is None else policy_paths(policy_dir)))

    def reload() -> None:
        try:
            profiles = read_profiles(path)
            grants = None if policy_dir is None else read_grants(profiles, policy_dir)
        except (BadCredentialsFile, BadPolicyFile) as error:
            _log.warning("access_keys_unchanged", reason=str(error))
            return
        signatures.replace(access_keys(profiles))
        if access_control is not None and grants is not None:
            access_control.replace(grants)
        _log.info("access_keys_read", count=len(profiles))

    watch = FileWatch(paths, reload)
    # The files may have changed since the options were read.
    reload()
    return watch

"""The checks of callers: signatures, policies and limits of keys, which follow their files."""

from __future__ import annotations

from typing import NamedTuple

from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.identities import IdentityRegistry
from dynactor.api.access.observed_denials import ObservedDenials
from dynactor.api.http.key_limits import KeyLimits
from dynactor.api.keys.session_tokens import SessionTokens
from dynactor.api.keys.signature import Signatures
from dynactor.api.options.server_settings import ServerSettings
from dynactor.api.serve.file_watch import FileWatch
from dynactor.api.serve.key_watch import key_watch
from dynactor.api.sts.token_service import TokenService


class Security(NamedTuple):
    """The checks of requests; None for checks that the settings leave out."""

    tokens: SessionTokens
    token_service: TokenService
    signatures: Signatures | None = None
    access_control: AccessControl | None = None
    limits: KeyLimits | None = None
    # Reads the files of keys and policies again when they change.
    watch: FileWatch | None = None


def security(settings: ServerSettings) -> Security:
    """The checks that the settings ask for."""
    keys, policies = settings.keys, settings.policies
    account = settings.database.account_id
    tokens = SessionTokens()
    registry = IdentityRegistry(policies.identities, tokens, account)
    if keys.file is None:
        return Security(tokens, TokenService(tokens, registry, None, account))
    access_keys = keys.access_keys
    assert access_keys is not None, "the file of the keys was not read"
    signatures = Signatures(access_keys, tokens)
    access_control = None
    directory = None if policies.directory is None else policies.directory.expanduser()
    if directory is not None:
        observed = ObservedDenials() if policies.mode == "observe" else None
        access_control = AccessControl(registry, observed, explains=policies.explains)
    limits = KeyLimits(tokens)
    limits.replace(keys.profiles or ())
    path = keys.file.expanduser()
    return Security(
        tokens,
        TokenService(tokens, registry, signatures, account),
        signatures,
        access_control,
        limits,
        key_watch(path, signatures, directory, registry, limits, secret=keys.secret),
    )

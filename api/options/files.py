"""Reads the files that options name. Each is read once, because a pipe can't be read twice."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from dynactor.api.access.identities import Identities
from dynactor.api.access.policy_files import BadPolicyFile, open_identities, read_identities
from dynactor.api.access.policy_settings import PolicySettings
from dynactor.api.admin_api.admin_settings import AdminSettings
from dynactor.api.admin_api.callers import CallerRules
from dynactor.api.admin_api.secret_file import BadSecretFile, read_secret
from dynactor.api.keys.access_keys import BadCredentialsFile, read_profiles
from dynactor.api.keys.key_file import BadKeyFile, check_private
from dynactor.api.keys.key_settings import KeySettings
from dynactor.api.options.server_settings import ServerSettings
from dynactor.model.configuration_error import ConfigurationError
from dynactor.streams.kafka.broker import BrokerSettings


def with_files(settings: ServerSettings) -> ServerSettings:
    """Settings with the contents of the files; raises ``ConfigurationError``."""
    nodes, keys = settings.nodes, _with_profiles(settings.keys)
    return structs.replace(
        settings,
        admin=_with_callers(settings.admin),
        nodes=structs.replace(nodes, secret=_secret(nodes.secret_file, "--peer-secret-file") or ""),
        keys=keys,
        policies=structs.replace(
            settings.policies, identities=_identities(settings.policies, keys)
        ),
        broker=_with_password(settings.broker),
    )


def _with_callers(admin: AdminSettings) -> AdminSettings:
    callers = CallerRules(
        _secret(admin.secret_file, "--admin-secret-file"),
        _secret(admin.read_secret_file, "--admin-read-secret-file"),
        admin.client_ca is not None,
        frozenset(admin.full_clients) or None,
    )
    if callers.secret is not None and callers.secret == callers.read_secret:
        raise ConfigurationError(
            "--admin-read-secret-file has the secret of --admin-secret-file, which allows "
            "changes: give another secret"
        )
    return structs.replace(admin, callers=callers)


def _with_profiles(keys: KeySettings) -> KeySettings:
    secret = None
    if keys.secret_file is not None:
        try:
            check_private(keys.secret_file.expanduser())
        except BadKeyFile as error:
            raise ConfigurationError(f"--credentials-key-file: {error}") from None
        secret = _secret(keys.secret_file, "--credentials-key-file")
    if keys.file is None:
        return keys
    try:
        profiles = read_profiles(keys.file.expanduser(), secret)
    except BadCredentialsFile as error:
        raise ConfigurationError(f"--credentials-file: {error}") from None
    return structs.replace(keys, secret=secret, profiles=profiles)


def _identities(policies: PolicySettings, keys: KeySettings) -> Identities:
    if policies.directory is None:
        return open_identities(keys.profiles or ())
    try:
        return read_identities(keys.profiles or (), policies.directory.expanduser())
    except BadPolicyFile as error:
        raise ConfigurationError(f"--policy-dir: {error}") from None


def _with_password(broker: BrokerSettings) -> BrokerSettings:
    path = broker.sasl_password_file
    if path is None:
        return broker
    try:
        password = path.expanduser().read_text().strip()
    except OSError as error:
        raise ConfigurationError(
            f"--kafka-sasl-password-file {path} can't be read: {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"--kafka-sasl-password-file {path} is not UTF-8 text") from error
    return structs.replace(broker, sasl_password=password, sasl_password_file=None)


def _secret(path: Path | None, option: str) -> str | None:
    if path is None:
        return None
    try:
        return read_secret(path.expanduser(), option)
    except BadSecretFile as error:
        raise ConfigurationError(str(error)) from None

"""The options of ``dynactor serve`` that say who may use the admin port."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Group, Parameter

from dynactor.api.admin_api.callers import CallerRules
from dynactor.api.admin_api.secret_file import BadSecretFile, read_secret
from dynactor.api.options.configuration_error import ConfigurationError

_CALLERS: Final = Group("Callers of the admin port", sort_key=3)


@Parameter(name="*", group=_CALLERS)
@dataclass(frozen=True, kw_only=True)
class AdminOptions:
    """Invariant: the files of secrets have usable values."""

    admin_secret_file: Path | None = None
    """File with the secret for changes over the admin port from other machines. Callers on the same
    machine need no secret."""

    admin_read_secret_file: Path | None = None
    """File with a secret for reading over the admin port. Every caller then needs a secret or a
    client certificate, except for /health and /ready."""

    admin_client_ca: Path | None = None
    """File with the certificate authorities of clients of the admin port, in PEM form. Every caller
    then needs a client certificate or a secret, except for /health and /ready. Needs TLS."""

    admin_full_clients: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """Common names of client certificates that may make changes. Others may only read. Default: all
    may make changes."""

    def __post_init__(self) -> None:
        if self.admin_full_clients and self.admin_client_ca is None:
            raise ConfigurationError(
                "--admin-full-clients names certificates of clients: give --admin-client-ca"
            )
        rules = self.callers
        if rules.secret is not None and rules.secret == rules.read_secret:
            raise ConfigurationError(
                "--admin-read-secret-file has the secret of --admin-secret-file, which allows "
                "changes: give another secret"
            )

    # Read once: the checked value is the used value, and a pipe can't be read twice.
    @cached_property
    def callers(self) -> CallerRules:
        """The proofs of callers that the admin port accepts.

        Raises:
            ConfigurationError: a file has no usable value.
        """
        names = frozenset(
            name.strip() for text in self.admin_full_clients for name in text.split(",")
        )
        return CallerRules(
            _secret(self.admin_secret_file, "--admin-secret-file"),
            _secret(self.admin_read_secret_file, "--admin-read-secret-file"),
            self.admin_client_ca is not None,
            names or None,
        )


def _secret(path: Path | None, option: str) -> str | None:
    return None if path is None else read_secret_option(path, option)


def read_secret_option(path: Path, option: str) -> str:
    """The secret in the file of an option.

    Raises:
        ConfigurationError: the file has no usable value.
    """
    try:
        return read_secret(path.expanduser(), option)
    except BadSecretFile as error:
        raise ConfigurationError(str(error)) from None

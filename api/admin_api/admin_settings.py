"""The settings of the admin port."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Struct

from dynactor.api.admin_api.callers import CallerRules
from dynactor.model.option import Option, OptionGroup

Console: TypeAlias = Literal["full", "read-only"]


def _names(texts: tuple[str, ...]) -> tuple[str, ...]:
    # An empty name stays, because no names would give all clients full access.
    return tuple(name.strip() for text in texts for name in text.split(","))


class AdminSettings(Struct, frozen=True):
    """The admin port, its console and its callers."""

    port: Annotated[int | None, Option("--admin-port", OptionGroup.ADMIN, is_port=True)] = None
    """Port for metrics, health checks, backups, replays, insights and the virtual clock. 0 takes a
    free port. Default: the first free port from 8001 to 8010, with --port 0 any free port."""

    no_admin: Annotated[bool, Option("--no-admin", OptionGroup.ADMIN)] = False
    """Do not open the admin port."""

    console: Annotated[Console, Option("--console", OptionGroup.ADMIN)] = "full"
    """Web pages on the admin port that show the tables. read-only: they can't change anything."""

    no_console: Annotated[bool, Option("--no-console", OptionGroup.ADMIN)] = False
    """Do not serve the console."""

    host: Annotated[str, Option("--admin-host", OptionGroup.ADMIN)] = "127.0.0.1"
    """Address of the admin port. An address other than loopback needs --admin-read-secret-file,
    --admin-client-ca or --allow-open."""

    secret_file: Annotated[Path | None, Option("--admin-secret-file", OptionGroup.CALLERS)] = None
    """File with the secret for changes over the admin port from other machines. Callers on the same
    machine need no secret."""

    read_secret_file: Annotated[
        Path | None, Option("--admin-read-secret-file", OptionGroup.CALLERS)
    ] = None
    """File with a secret for reading over the admin port. Every caller then needs a secret or a
    client certificate, except for /health and /ready."""

    client_ca: Annotated[Path | None, Option("--admin-client-ca", OptionGroup.CALLERS)] = None
    """File with the certificate authorities of clients of the admin port, in PEM form. Every caller
    then needs a client certificate or a secret, except for /health and /ready. Needs TLS."""

    full_clients: Annotated[
        tuple[str, ...], Option("--admin-full-clients", OptionGroup.CALLERS, _names)
    ] = ()
    """Common names of client certificates that may make changes. Others may only read. Default: all
    may make changes."""

    # The proofs of callers that the port accepts, with the secrets, which are read once.
    callers: CallerRules = CallerRules()

    @property
    def console_mode(self) -> Console | None:
        """The mode of the console; None if there is no console."""
        return None if self.no_console or self.no_admin else self.console

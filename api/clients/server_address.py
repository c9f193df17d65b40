"""The address of the server that a command works on."""

from __future__ import annotations

from dataclasses import dataclass

from cyclopts import Parameter

from dynactor.api.clients.admin_client import AdminClient, AdminRequestFailed
from dynactor.api.clients.reach import CannotCall
from dynactor.api.http.server_identity import IDENTITY_PATH, ServerIdentity


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """The options that name a server."""

    endpoint: str = "http://127.0.0.1:8000"
    """Address of the server, from which the command also gets the address of the admin port."""

    admin_endpoint: str | None = None
    """Address of the admin port, if the command can't use the one that the server gives."""

    def admin_client(self) -> AdminClient:
        """A client of the server's admin listener; raises ``CannotCall`` if there is none."""
        if self.admin_endpoint is not None:
            return AdminClient(self.admin_endpoint, parameters=self.parameters())
        identity = self.identity()
        if identity.admin_endpoint is None:
            raise CannotCall(
                f"The server at {self.endpoint} has no admin listener: start it without --no-admin"
            )
        return AdminClient(identity.admin_endpoint, parameters=self.parameters())

    def parameters(self) -> dict[str, str]:
        """The query parameters of every request to the admin listener."""
        return {}

    def identity(self) -> ServerIdentity:
        """The server's identity; raises ``CannotCall`` if there is no server of this kind."""
        server = AdminClient(self.endpoint, "dynactor", option="--endpoint")
        try:
            return server.ask("GET", IDENTITY_PATH, ServerIdentity)
        except AdminRequestFailed as error:
            raise CannotCall(f"{self.endpoint} is not dynactor: {error}") from None

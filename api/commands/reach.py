"""The errors of commands that can't reach a server."""

from __future__ import annotations


class CannotCall(Exception):
    """The endpoint does not answer as the server should; the message says why."""


def no_address(endpoint: str) -> CannotCall:
    """The error for an endpoint that is not a URL."""
    return CannotCall(f"{endpoint} is not an address: give http://HOST:PORT")


def not_reached(endpoint: str, reason: str) -> CannotCall:
    """The error for an endpoint to which no connection can be opened."""
    return CannotCall(
        f"Cannot reach {endpoint}: {reason}; is the server running there? `dynactor serve` "
        "starts one, and --endpoint names another one"
    )

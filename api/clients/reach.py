"""The errors of commands that can't reach a server."""

from __future__ import annotations


class CallFailed(Exception):
    """A call of a server failed. A command that does not catch it shows it and exits with 1."""


class CannotCall(CallFailed):
    """The server can't be reached, or its answer is invalid; the message gives the reason."""


def no_address(endpoint: str) -> CannotCall:
    """The error for an endpoint that is not a URL."""
    return CannotCall(f"{endpoint} is not an address: give http://HOST:PORT")


def not_reached(endpoint: str, reason: str, *, option: str = "--endpoint") -> CannotCall:
    """The error for an endpoint to which no connection can be opened; ``option`` gives another."""
    return CannotCall(
        f"Cannot reach {endpoint}: {reason}; is the server running there? Start a server with "
        f"`dynactor serve`, or give the address of another one with {option}"
    )

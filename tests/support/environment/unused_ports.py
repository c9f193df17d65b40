"""Ports for servers that are stopped and started again, or that can't choose a port themselves."""

from __future__ import annotations

import random
import socket
from typing import Final

# These ports are below the kernel's ephemeral ports. Otherwise the connection of any client could
# get the port of a stopped server as its own, and the server could not start again.
_PORTS: Final = range(15_000, 30_000)


def unused_ports(count: int) -> list[int]:
    """Loopback ports that are not in use."""
    found: list[int] = []
    for port in random.sample(_PORTS, k=len(_PORTS)):
        if is_unused(port):
            found.append(port)
        if len(found) == count:
            break
    return found


def is_unused(port: int) -> bool:
    """Whether a server can listen on a loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

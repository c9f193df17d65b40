"""Messages to a service manager, for systemd's Type=notify. Source: sd_notify(3)."""

from __future__ import annotations

import os
import socket
from typing import Final, Literal, TypeAlias

State: TypeAlias = Literal["READY=1", "STOPPING=1"]

_VARIABLE: Final = "NOTIFY_SOCKET"


def notify_service_manager(state: State) -> None:
    """Notify the service manager that started this process, if any; never fails."""
    address = os.environ.get(_VARIABLE, "")
    # An abstract address starts with @ in the variable and with a null byte in the kernel.
    if not address.startswith(("/", "@")):
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
            manager.setblocking(False)
            manager.connect(address.replace("@", "\0", 1) if address[0] == "@" else address)
            manager.send(state.encode())
    except OSError:
        # Ignored, because the server does not need the service manager.
        return

"""A server in the image's root, as a container runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from tests.image.root import Root
from tests.support.environment.hanging import HANG_SECONDS

# No account has this number.
_USER: Final = 54_321
_PORT: Final = 18_765

# In separate namespaces: the root is read-only except for /data, and the server is process 1.
_ENTER: Final = """
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
mount --bind "$DATA" "$ROOT/data"
mount -o remount,bind,ro "$ROOT"
mount -t proc proc "$ROOT/proc"
exec chroot --userspec="$USER_ID:$USER_ID" --groups= "$ROOT" /usr/bin/env -i "$@"
"""


def try_image(image: Root) -> list[str]:
    """Start the server, send requests to it, and stop it; returns the failures."""
    data = image.path.parent / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    data.chmod(0o1777)
    variables = {**image.environment, "DYNACTOR_PORT": str(_PORT)}
    given = [f"{name}={value}" for name, value in variables.items()]
    command = ["sh", "-euc", _ENTER, "sh", *given, *image.stage.command]
    environment = {"PATH": os.environ["PATH"], "ROOT": str(image.path), "DATA": str(data)}
    with subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", *command],
        env={**environment, "USER_ID": str(_USER)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("Listening on "):
            return [f"The server does not start: it ends with {process.wait(HANG_SECONDS)}"]
        try:
            faults = _asked()
            server = _child(process.pid)
            if _process_id_within(server) != "1":
                faults.append("The server is not process 1")
            os.kill(server, signal.SIGTERM)
            code = process.wait(HANG_SECONDS)
            faults += [] if code == 0 else [f"The server ended with {code} on SIGTERM"]
        finally:
            process.kill()
    owners = {path.lstat().st_uid for path in (data / "dynactor").rglob("*")}
    if owners != {_USER}:
        faults.append(f"The data is of the users {owners}")
    sys.stdout.write("Read-only, as any user, as process 1: " + ("no\n" if faults else "yes\n"))
    return faults


def _asked() -> list[str]:
    connection = HTTPConnection("127.0.0.1", _PORT, timeout=10)
    connection.request("GET", "/_dynactor")
    told = json.loads(connection.getresponse().read())
    connection.close()
    return [] if told["store"] == "disk" else [f"The server told {told}"]


def _child(process: int) -> int:
    """The only child of a process."""
    [child] = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(child)


def _process_id_within(process: int) -> str:
    """The number of a process in its own namespace."""
    status = Path(f"/proc/{process}/status").read_text()
    [numbers] = [line for line in status.splitlines() if line.startswith("NSpid:")]
    return numbers.split()[-1]

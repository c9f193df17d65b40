"""The command that starts each server. Programs are installed into the user's cache once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from tests.differential.peers.local import install as install_local
from tests.support.servers.server import PROJECT

# Servers that keep connections open, as the workload generator requires.
LoadedName = Literal[
    "dynactor",
    "dynactor-memory",
    "dynalite",
    "dynalite-memory",
    "local",
    "local-memory",
    "dynoxide",
    "dynoxide-memory",
]
ServerName = Literal[LoadedName, "moto-memory"]
SERVER_NAMES: Final[tuple[ServerName, ...]] = get_args(ServerName)

_DYNALITE_VERSION: Final = "4.0.0"
_DYNOXIDE_VERSION: Final = "3.2.0"
_MOTO_VERSION: Final = "5.2.5"


class NoPeers(Exception):
    """A server can't be started; the message says why."""


class Launch(NamedTuple):
    """The command that starts a server, the one that prints its help, and the folder of both."""

    command: list[str]
    help: list[str]
    folder: Path


def is_on_disk(name: ServerName) -> bool:
    """Whether a server keeps its data in a directory."""
    return not name.endswith("-memory")


def launch(
    name: ServerName,
    port: int,
    directory: Path,
    serve: Sequence[str] = (),
    project: Path = PROJECT,
) -> Launch:
    """The command that starts a server on a port of loopback, with its data in ``directory``.

    ``serve`` are more options of this server, and ``project`` is its checkout.

    Raises:
        NoPeers: a server can't be started.
    """
    data = directory if is_on_disk(name) else None
    match name.removesuffix("-memory"):
        case "dynactor":
            place = ("--in-memory",) if data is None else ("--data-dir", str(data))
            program = [sys.executable, "-m", "dynactor"]
            options = ("--port", str(port), *place, *serve)
            return Launch([*program, "serve", *options], [*program, "--help"], project)
        case "dynalite":
            return _dynalite(port, data)
        case "local":
            return _local(port, data)
        case "dynoxide":
            file = () if data is None else ("--db-path", str(data / "dynoxide.db"))
            program = [str(_dynoxide())]
            return Launch([*program, "--port", str(port), *file], [*program, "--help"], directory)
        case _:
            program = [str(_moto()), "-c", "from moto.server import main; main()"]
            options = ("--host", "127.0.0.1", "--port", str(port))
            return Launch([*program, *options], [*program, "--help"], directory)


def _dynalite(port: int, data: Path | None) -> Launch:
    _need("dynalite", "node", "npm")
    folder = _cache(f"dynalite-{_DYNALITE_VERSION}")
    program = folder / "node_modules" / "dynalite" / "cli.js"
    package = f"dynalite@{_DYNALITE_VERSION}"
    npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
    _install(program, npm)
    command = ["node", str(program)]
    options = [
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0"),
        *(() if data is None else ("--path", str(data))),
    ]
    return Launch([*command, *options], [*command, "--help"], folder)


def _local(port: int, data: Path | None) -> Launch:
    _need("DynamoDB Local", "java", "npm")
    place = ("-inMemory",) if data is None else ("-dbPath", str(data.absolute()))
    command = ["java", "-Djava.library.path=DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"]
    options = ("-sharedDb", "-disableTelemetry", "-port", str(port), *place)
    # DynamoDB Local finds its libraries relative to its own folder.
    return Launch([*command, *options], [*command, "-help"], install_local())


def _dynoxide() -> Path:
    """The program, which takes some minutes to compile."""
    _need("Dynoxide", "cargo")
    folder = _cache(f"dynoxide-{_DYNOXIDE_VERSION}")
    program = folder / "bin" / "dynoxide"
    crate = ("dynoxide-rs", "--version", _DYNOXIDE_VERSION, "--locked")
    _install(program, ["cargo", "install", "--root", str(folder), *crate])
    return program


def _moto() -> Path:
    """A Python that has moto's server."""
    folder = _cache(f"moto-{_MOTO_VERSION}")
    program = folder / "bin" / "python"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    package = f"moto[dynamodb,server]=={_MOTO_VERSION}"
    done = folder / "bin" / "moto_server"
    _install(done, [str(program), "-m", "pip", "install", "--quiet", package])
    return program


def _cache(name: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "dynactor" / name


def _install(result: Path, command: list[str]) -> None:
    """Run a command that creates a file, unless the file exists."""
    if result.exists():
        return
    try:
        subprocess.run(command, check=True)
    except subprocess.CalledProcessError as error:
        raise NoPeers(f"{' '.join(command)} failed, see above") from error


def _need(name: str, *programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise NoPeers(f"{name} needs {program}, which is not here: leave it out with --servers")

"""The image, without Docker: its files suffice to build, its commands run and end normally."""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

from tests.support.clients.clients import boto3_client
from tests.support.environment.dockerfile import stages
from tests.support.environment.unused_ports import unused_ports
from tests.support.servers.server import PROJECT, Server

BUILD, IMAGE = stages(PROJECT / "compose" / "Dockerfile")
IGNORED = (PROJECT / ".dockerignore").read_text().splitlines()


def image_environment(installed: Path, data: Path, **added: str) -> dict[str, str]:
    """The image's own variables, with paths of the test."""
    given = IMAGE.environment
    assert given["XDG_DATA_HOME"] in IMAGE.all("VOLUME")
    assert given["PATH"] == "/opt/dynactor/bin:$PATH"
    return {
        **given,
        "XDG_DATA_HOME": str(data),
        "PATH": f"{installed / 'bin'}:{os.environ['PATH']}",
        "DYNACTOR_PORT": str(unused_ports(1)[0]),
        **added,
    }


def health(environment: dict[str, str]) -> int:
    done = subprocess.run(
        IMAGE.health_check, env=environment, stderr=subprocess.DEVNULL, check=False
    )
    return done.returncode


def test_the_image_contains_the_whole_package(wheel: Path, tmp_path: Path):
    source = tmp_path / "source"
    source.mkdir()
    for sources, target in BUILD.copied:
        for name in sources:
            assert not is_ignored(name), f"{name} is not in the build's context"
            place = source / target
            if (PROJECT / name).is_dir():
                shutil.copytree(PROJECT / name, place)
            else:
                shutil.copy(PROJECT / name, place)
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    done = subprocess.run(build, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = (source / "dist").iterdir()
    assert names(built) == names(wheel)
    assert any("--constraint constraints.txt ." in command for command in BUILD.all("RUN"))


def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def is_ignored(name: str) -> bool:
    """Whether .dockerignore excludes the file; the last matching pattern decides."""
    ignored = False
    for pattern in IGNORED:
        if fnmatch.fnmatch(name, pattern.removeprefix("!").removeprefix("**/")):
            ignored = not pattern.startswith("!")
    return ignored


def test_the_command_of_the_image_serves_and_its_health_check_works(
    installed: Path, tmp_path: Path
):
    environment = image_environment(installed, tmp_path / "data")
    assert health(environment) == 1
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            IMAGE.command,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # Look the command up in the image's PATH.
            executable=shutil.which(IMAGE.command[0], path=environment["PATH"]),
        ) as process,
    ):
        try:
            server = Server(process, log)
            assert server.endpoint == f"http://127.0.0.1:{environment['DYNACTOR_PORT']}"
            with closing(boto3_client(server.endpoint)) as client:
                assert client.list_tables()["TableNames"] == []
            assert health(environment) == 0
            # Set a proxy, which the health check must not use for requests to its own container.
            assert health({**environment, "http_proxy": "http://192.0.2.1:3128"}) == 0
            (stop_signal,) = IMAGE.all("STOPSIGNAL")
            assert stop_signal == "SIGTERM"
            assert server.stop() == 0
        finally:
            process.kill()
    assert health(environment) == 1
    assert list((tmp_path / "data").iterdir()) == [tmp_path / "data" / "dynactor"]

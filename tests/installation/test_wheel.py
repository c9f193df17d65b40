"""The package as users get it: what is in it, and that it serves wherever it is started."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import venv
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.clients import boto3_client
from tests.support.server import PROJECT, Server

FLOORS = {"model", "storage", "streams", "actors", "api"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    run(*command, "--directory", directory, cwd=PROJECT)
    (built,) = directory.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and the dependencies of the one that runs the tests."""
    environment = tmp_path_factory.mktemp("installed")
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=environment)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    # Lines of other .pth files there are not followed, so an editable install stays out.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return environment


def run(*command: str | Path, cwd: Path) -> None:
    finished = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_the_wheel_holds_the_five_floors_and_no_tests(wheel: Path):
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    folders = {name.partition("/")[0] for name in names}
    assert {folder for folder in folders if not folder.endswith(".dist-info")} == FLOORS
    assert "model/py.typed" in names
    for floor in FLOORS:
        sources = {path.relative_to(PROJECT).as_posix() for path in (PROJECT / floor).rglob("*.py")}
        assert sources <= set(names)


def test_it_serves_from_a_folder_with_packages_of_the_same_names(installed: Path, tmp_path: Path):
    for name in (*FLOORS, "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('the wrong {name}')\n")
    command = [installed / "bin" / "dynactor", "serve", "--port", "0", "--data-dir", "data"]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            server = Server(process, log)
            with closing(boto3_client(server.endpoint)) as client:
                assert client.list_tables()["TableNames"] == []
            assert server.stop() == 0
        finally:
            process.kill()
    assert (tmp_path / "data").is_dir()


def test_the_command_tells_its_version(installed: Path, tmp_path: Path):
    command = [installed / "bin" / "dynactor", "--version"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f'version = "{told.stdout.strip()}"' in (PROJECT / "pyproject.toml").read_text()

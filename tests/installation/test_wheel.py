"""The package as users get it: the contents of wheel and sdist, and a server from any directory."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

import pytest

import dynactor
from tests.support.clients.clients import boto3_client
from tests.support.servers.server import PROJECT, Server

FLOORS = {"model", "storage", "streams", "actors", "api", "load"}


def tracked(*options: str) -> set[str]:
    """Files in the index of git, and those that ``options`` add; no links."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", *options],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = (Path(line) for line in listed.stdout.splitlines())
    return {path.as_posix() for path in paths if (PROJECT / path).is_file()}


def packaged() -> set[str]:
    """The names of the package's files in a wheel."""
    return {
        path if path.startswith("dynactor/") else f"dynactor/{path}"
        # Include untracked modules, because the wheel includes them.
        for path in tracked("--others", "--exclude-standard")
        if path.partition("/")[0] in FLOORS | {"dynactor"}
    }


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, including its metadata, by name."""
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path):
    names = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert names == packaged()
    assert "dynactor/py.typed" in packaged()


def test_the_wheel_made_from_the_sdist_has_the_same_files(wheel: Path, sdist: Path, tmp_path: Path):
    subprocess.run(["tar", "-xf", sdist], cwd=tmp_path, check=True)
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert {path.name for path in (source / "dynactor").iterdir()}.isdisjoint(FLOORS)
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run(
        [*build, "--directory", tmp_path / "wheel"],
        cwd=source,
        capture_output=True,
        check=True,
    )
    (rebuilt,) = (tmp_path / "wheel").iterdir()
    assert contents(rebuilt) == contents(wheel)


def test_the_sdist_holds_what_the_tests_and_the_image_need(sdist: Path):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    unneeded = (".ci/", ".git", "shared/")
    assert {path for path in tracked() if not path.startswith(unneeded)} <= names


def test_installing_adds_one_package_its_metadata_and_the_command(installed: Path):
    (site_packages,) = installed.glob("lib/python*/site-packages")
    added = {path.name for path in site_packages.iterdir()} - {"dependencies.pth"}
    assert added == {"dynactor", f"dynactor-{dynactor.__version__}.dist-info"}
    commands = {path.name for path in (installed / "bin").iterdir()}
    assert {name for name in commands if "dynactor" in name} == {"dynactor"}


@pytest.mark.parametrize("command", [["dynactor"], ["python", "-m", "dynactor"]], ids=" ".join)
def test_the_server_starts_in_a_folder_with_packages_of_the_same_names(
    command: list[str], installed: Path, tmp_path: Path
):
    for name in (*FLOORS, "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('the wrong {name}')\n")
    program, *arguments = command
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [installed / "bin" / program, *arguments, "serve", "--port", "0", "--data-dir", "data"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
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


def test_the_command_prints_its_version(installed: Path, tmp_path: Path):
    command = [installed / "bin" / "dynactor", "--version"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == dynactor.__version__


def test_the_wheel_brings_the_pytest_plugin(installed: Path, tmp_path: Path):
    (tmp_path / "test_it.py").write_text(
        "def test_it(dynamodb):\n    assert list(dynamodb.tables.all()) == []\n"
    )
    command = [installed / "bin" / "python", "-m", "pytest", "-q", "test_it.py"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout
    [metadata] = installed.glob("lib/python*/site-packages/dynactor-*.dist-info/METADATA")
    assert "Provides-Extra: pytest" in metadata.read_text()

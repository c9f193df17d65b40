"""The package as users get it: what is in it, and that it serves wherever it is started."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

from tests.support.clients import boto3_client
from tests.support.server import PROJECT, Server

FLOORS = {"model", "storage", "streams", "actors", "api"}


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

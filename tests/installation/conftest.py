"""The package as installed, once for all tests of this folder, and the tools they need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.environment.left_out import leave_out
from tests.support.servers.server import PROJECT


def has_compose_client() -> bool:
    try:
        done = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0


_COMPOSE_IS_MISSING = not has_compose_client()

_SYSTEMD_IS_MISSING = shutil.which("systemd-analyze") is None

# Another project's suite, which test_moving_from_moto.py runs.
collect_ignore = ["shop_suite"]
if _COMPOSE_IS_MISSING:
    collect_ignore.append("test_compose_client.py")
if _SYSTEMD_IS_MISSING:
    collect_ignore.append("test_systemd_unit.py")


def pytest_configure(config: pytest.Config) -> None:
    if _COMPOSE_IS_MISSING:
        leave_out(
            config,
            "tests/installation/test_compose_client.py: needs docker compose (the client, and no "
            "engine), which is not on this machine",
        )
    if _SYSTEMD_IS_MISSING:
        leave_out(
            config,
            "tests/installation/test_systemd_unit.py: needs systemd-analyze, which is not on this "
            "machine",
        )

    if find_spec("moto") is None:
        leave_out(
            config,
            "tests/installation/test_moving_from_moto.py: its suite on moto itself needs the "
            "package moto[dynamodb]",
        )


def run(*command: str | Path, cwd: Path) -> None:
    finished = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the sdist: those of ``make dist``, or new ones."""
    given = os.environ.get("DYNACTOR_TEST_ARCHIVES")
    if given:
        return Path(given).absolute()
    directory = tmp_path_factory.mktemp("archives")
    run(sys.executable, "-m", "hatchling", "build", "--directory", directory, cwd=PROJECT)
    return directory


@pytest.fixture(scope="session")
def wheel(archives: Path) -> Path:
    (built,) = archives.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def sdist(archives: Path) -> Path:
    (built,) = archives.glob("*.tar.gz")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and the dependencies of the one that runs the tests."""
    environment = tmp_path_factory.mktemp("installed")
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=environment)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    # Lines of other .pth files in that directory are ignored, so an editable install has no effect.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return environment

"""`make test-pythons` finds every other supported Python of a machine, each once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import json

from tests.pythons.interpreters import Interpreter, others, own, supported

# Versions that do not exist.
WANTED = [(3, 97), (3, 98)]
OWN = Interpreter("/own/python3.97", "CPython", (3, 97, 0))


def fake(path: Path, version: tuple[int, int, int], implementation: str = "CPython") -> None:
    """Make an executable that reports this version."""
    answer = json.encode(Interpreter(str(path), implementation, version))
    executable(path, f"echo '{answer.decode()}'")


def executable(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def found(tmp_path: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    machine = {"PATH": f"{tmp_path / 'a'}:{tmp_path / 'b'}", "PYENV_ROOT": str(tmp_path / "pyenv")}
    return [each.name for each in others(WANTED, OWN, {**machine, **(environment or {})})]


def test_interpreters_are_found_on_the_path_and_among_pyenvs_versions(tmp_path: Path):
    fake(tmp_path / "b/python3.98", (3, 98, 1))
    fake(tmp_path / "pyenv/versions/3.97.5/bin/python3.97", (3, 97, 5))
    assert found(tmp_path) == ["3.97.5", "3.98.1"]


def test_a_version_is_found_once_and_the_current_version_is_left_out(tmp_path: Path):
    fake(tmp_path / "a/python3.97", (3, 97, 0))
    fake(tmp_path / "a/python3.98", (3, 98, 1))
    fake(tmp_path / "b/python3.98", (3, 98, 1))
    assert found(tmp_path) == ["3.98.1"]


def test_other_interpreters_and_broken_ones_are_left_out(tmp_path: Path):
    fake(tmp_path / "a/python3.97", (3, 97, 1), "PyPy")
    executable(
        tmp_path / "a/python3.98", "echo 'pyenv: python3.98: command not found' >&2; exit 127"
    )
    fake(tmp_path / "b/python3.98", (3, 98, 2))
    assert found(tmp_path) == ["3.98.2"]


def test_the_current_interpreter_is_supported():
    assert own().minor in supported()

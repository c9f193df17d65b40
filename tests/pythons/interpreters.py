"""The CPython interpreters of this machine that the package supports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

PROJECT: Final = Path(__file__).parents[2]
_CLASSIFIER: Final = re.compile(r"Programming Language :: Python :: (\d+)\.(\d+)")
# In a virtual environment it reports the interpreter that made the environment.
_SCRIPT: Final = (
    "import json, os, platform, sys;"
    "executable = getattr(sys, '_base_executable', None) or sys.executable;"
    "print(json.dumps({'executable': os.path.realpath(executable),"
    " 'implementation': platform.python_implementation(), 'version': sys.version_info[:3]}))"
)
_ANSWER_SECONDS: Final = 30.0

Minor = tuple[int, int]


class Interpreter(Struct, frozen=True):
    """A Python interpreter. ``executable`` is its path with symbolic links resolved."""

    executable: str
    implementation: str
    version: tuple[int, int, int]

    @property
    def minor(self) -> Minor:
        """Major and minor version."""
        return self.version[:2]

    @property
    def name(self) -> str:
        """The version as text, such as ``3.12.1``."""
        return ".".join(map(str, self.version))


def supported() -> list[Minor]:
    """The versions in the package's classifiers."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    matches = filter(None, map(_CLASSIFIER.fullmatch, project["classifiers"]))
    return sorted((int(match[1]), int(match[2])) for match in matches)


def identify(executable: str | Path) -> Interpreter | None:
    """Run an executable to learn its version, None if it fails.

    A shim of pyenv fails unless its version is selected.
    """
    try:
        answer = subprocess.run(
            [executable, "-c", _SCRIPT],
            capture_output=True,
            check=True,
            timeout=_ANSWER_SECONDS,
        ).stdout
        return msgspec.json.decode(answer, type=Interpreter)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError):
        return None


def own() -> Interpreter:
    """The interpreter of the current virtual environment."""
    interpreter = identify(sys.executable)
    assert interpreter is not None
    return interpreter


def others(
    wanted: Sequence[Minor], own_interpreter: Interpreter, environment: Mapping[str, str]
) -> list[Interpreter]:
    """Find the CPython interpreters of these versions, each version once, except the own one.

    Looks on PATH, at ``/usr/bin/python3`` and in pyenv's versions.
    """
    found: dict[str, Interpreter] = {}
    for executable in _candidates(wanted, environment):
        interpreter = identify(executable)
        if (
            interpreter is not None
            and interpreter.implementation == "CPython"
            and interpreter.minor in wanted
            and interpreter.version != own_interpreter.version
        ):
            found.setdefault(interpreter.name, interpreter)
    return sorted(found.values(), key=lambda each: each.version)


def _candidates(wanted: Sequence[Minor], environment: Mapping[str, str]) -> Iterator[Path]:
    names = [f"python{major}.{minor}" for major, minor in wanted]
    for directory in environment.get("PATH", "").split(os.pathsep):
        yield from _existing(Path(directory), names)
    yield from _existing(Path("/usr/bin"), ["python3"])
    pyenv = environment.get("PYENV_ROOT") or Path.home() / ".pyenv"
    for versions in sorted(Path(pyenv, "versions").glob("*/bin")):
        yield from _existing(versions, names)


def _existing(directory: Path, names: Sequence[str]) -> Iterator[Path]:
    return (path for name in names if (path := directory / name).is_file())

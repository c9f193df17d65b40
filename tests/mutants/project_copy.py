"""A copy of the project to plant faults in, so that the working tree is never touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

PROJECT: Final = Path(__file__).parents[2]
# A timeout, because some faults make a test hang.
_LONGEST_SECONDS: Final = 1200.0
_TESTS_FAILED: Final = 1


class Outcome(NamedTuple):
    """The result of a run of pytest.

    ``seconds`` is the time of the slowest test, but at most the processor time of the run, because
    tests wait for others on a busy machine. If no test was run, ``error_output`` is pytest's
    output, else None.
    """

    passed: bool
    seconds: float
    error_output: str | None


class ProjectCopy:
    """A copy of the project in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, tests: Sequence[str]) -> Outcome:
        """Run tests of the copy with this interpreter."""
        report = self.directory / "report.xml"
        report.unlink(missing_ok=True)
        command = [
            *(sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider"),
            f"--junit-xml={report}",
            *tests,
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.directory),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        began, began_work = monotonic(), _processor_seconds()
        try:
            ended = subprocess.run(
                command,
                cwd=self.directory,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_LONGEST_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(passed=False, seconds=monotonic() - began, error_output=None)
        if ended.returncode not in (0, _TESTS_FAILED):
            return Outcome(passed=False, seconds=0.0, error_output=ended.stdout + ended.stderr)
        seconds = min(_slowest_seconds(report), _processor_seconds() - began_work)
        return Outcome(ended.returncode == 0, seconds, None)


def _processor_seconds() -> float:
    """The processor time of all runs so far."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _slowest_seconds(report: Path) -> float:
    cases = ET.parse(report).iter("testcase")  # noqa: S314 - pytest's own report
    return max(float(case.attrib["time"]) for case in cases)


@contextmanager
def project_copy() -> Iterator[ProjectCopy]:
    """Copy the files of the working tree, except those that git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    with TemporaryDirectory(prefix="dynactor-mutants-") as name:
        directory = Path(name)
        for file in filter(None, listed.stdout.split("\0")):
            source, target = PROJECT / file, directory / file
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink():
                target.symlink_to(source.readlink())
            elif source.is_file():
                shutil.copyfile(source, target)
        yield ProjectCopy(directory)

"""Jars for tests are fetched once, by any process, and never partially."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment.maven_jars import NotFetched, class_path, jars
from tests.support.servers.server import PROJECT

# Simulates Maven, which takes time and fills the directory file by file.
_MAVEN = """#!/bin/sh
echo "$@" >> "{calls}"
for argument; do case "$argument" in -DoutputDirectory=*) into="${{argument#*=}}";; esac; done
mkdir -p "$into"
echo one > "$into/one.jar"
{between}
echo two > "$into/two.jar"
"""


class Machine:
    """A machine with only these programs, and an empty cache."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pom = folder / "thing.xml"
        self.pom.write_text("<project/>")
        self.cache = folder / "cache"
        self._programs = folder / "bin"
        self._programs.mkdir()
        self._calls = folder / "calls"
        monkeypatch.setenv("XDG_CACHE_HOME", str(self.cache))
        monkeypatch.setenv("PATH", f"{self._programs}:{os.environ['PATH']}")
        self.install("java", "#!/bin/sh\n")

    def install(self, name: str, script: str) -> None:
        program = self._programs / name
        program.write_text(script)
        program.chmod(0o755)

    def install_maven(self, between: str) -> None:
        self.install("mvn", _MAVEN.format(calls=self._calls, between=between))

    @property
    def calls(self) -> int:
        return len(self._calls.read_text().splitlines())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_concurrent_runs_fetch_once_and_all_get_every_jar(machine: Machine):
    machine.install_maven("sleep 0.5")
    script = (
        "import sys; from pathlib import Path; "
        "from tests.support.environment.maven_jars import jars; "
        "print(*sorted(path.name for path in jars(Path(sys.argv[1])).iterdir()))"
    )
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(machine.pom)],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    assert [one.communicate()[0].split() for one in asking] == [["one.jar", "two.jar"]] * 4
    assert machine.calls == 1


def test_the_jars_of_a_changed_pom_are_fetched_and_the_old_jars_stay(machine: Machine):
    machine.install_maven("")
    before = jars(machine.pom)
    assert jars(machine.pom) == before
    machine.pom.write_text("<project><version>2</version></project>")
    after = jars(machine.pom)
    assert before != after
    assert names(before) == names(after) == ["one.jar", "two.jar"]
    assert machine.calls == 2


def test_a_partial_download_is_not_cached(machine: Machine):
    machine.install_maven("echo 'no such artifact' >&2; exit 1")
    with pytest.raises(NotFetched, match="no such artifact"):
        jars(machine.pom)
    assert [path.name for path in machine.cache.rglob("*.jar")] == []
    machine.install_maven("")
    assert names(jars(machine.pom)) == ["one.jar", "two.jar"]


def test_the_error_without_maven_names_the_missing_program(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", os.environ["PATH"].split(":")[0])
    with pytest.raises(NotFetched, match=r"needs Java 17 and Maven: there is no mvn"):
        jars(machine.pom)


def test_a_class_path_names_the_jars_of_a_directory():
    assert class_path(Path("/a"), Path("/b")) == "/a/*:/a:/b/*:/b"

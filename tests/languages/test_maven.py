"""Java: the guide's examples, and the SDK's retries after faults."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynactor.testing
from tests.support.environment.languages import guide_files, kept_folder, run, write_files

_HERE = Path(__file__).parent

FAULTS = ["internal-server-error", "service-unavailable", "cut-before", "cut-after", "cut-middle"]


@pytest.fixture(scope="module")
def project() -> Path:
    """A project with the SDK and JUnit."""
    folder = kept_folder("maven-suite")
    retries = (_HERE / "RetriesTest.java").read_text()
    sources = {"RetriesTest.java": retries, **guide_files("java")}
    write_files(folder, {"pom.xml": (_HERE / "pom.xml").read_text()})
    write_files(folder / "src/test/java", sources)
    return folder


def test_the_java_examples_of_the_guide_work(project: Path):
    told = run(["mvn", "-B", "test", "-Dtest=ThreadsTest"], project)
    assert "Tests run: 1, Failures: 0, Errors: 0" in told


def test_retries_of_the_sdk_apply_no_transaction_twice(project: Path):
    with dynactor.testing.server() as server:
        run(
            ["mvn", "-B", "test", "-Dtest=RetriesTest"],
            project,
            ADMIN=server.admin_endpoint,
            FAULTS=" ".join(FAULTS),
            **server.environment,
        )
        assert [each["injected"] for each in server.faults.rules] == [1] * len(FAULTS)

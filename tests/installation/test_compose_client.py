"""The compose client reads the compose file; this needs no container engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.environment.compose_file import COMPOSE_FILE, read_compose_file


def resolved(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The configuration that ``up`` would start, as JSON."""
    command = ["docker", "compose", "--file", str(path), *options, "config", "--format", "json"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), {"dynactor", "kafka"}),
        (("--profile", "metrics"), {"dynactor", "kafka", "prometheus"}),
    ],
)
def test_the_compose_client_starts_the_services_of_the_file(
    options: tuple[str, ...], names: set[str]
):
    done = resolved(COMPOSE_FILE, *options)
    assert (done.returncode, done.stderr) == (0, "")
    services = json.loads(done.stdout)["services"]
    assert services.keys() == names
    read = read_compose_file()
    for name, service in services.items():
        assert (service.get("environment") or {}) == read.services[name].environment
        assert {port["host_ip"] for port in service["ports"]} == {"127.0.0.1"}
        check = read.services[name].healthcheck
        assert service.get("healthcheck", {}).get("test") == (check and check.test)


def test_the_compose_client_refuses_a_file_with_a_misspelt_member(tmp_path: Path):
    broken = tmp_path / "compose.yaml"
    broken.write_text(COMPOSE_FILE.read_text().replace("healthcheck:", "health_check:"))
    done = resolved(broken)
    assert done.returncode != 0
    assert "health_check" in done.stderr

"""The compose file: its parts fit together, and the server's variables are options."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import msgspec
import pytest

from tests.support.environment.compose_file import COMPOSE_FILE, read_compose_file
from tests.support.environment.dockerfile import stages
from tests.support.servers.server import PROJECT

COMPOSE = read_compose_file()
DYNACTOR, KAFKA, PROMETHEUS = (
    COMPOSE.services[name] for name in ("dynactor", "kafka", "prometheus")
)
FOLDER = COMPOSE_FILE.parent


def test_a_member_that_is_misspelt_or_of_another_type_is_found(tmp_path):
    text = COMPOSE_FILE.read_text()
    for right, wrong in (("healthcheck:", "health_check:"), ("interval: 10s", "interval: 10")):
        assert right in text
        broken = tmp_path / "compose.yaml"
        broken.write_text(text.replace(right, wrong))
        with pytest.raises(msgspec.ValidationError):
            read_compose_file(broken)


def test_the_server_and_kafka_belong_to_no_profile():
    assert [name for name, service in COMPOSE.services.items() if not service.profiles] == [
        "dynactor",
        "kafka",
    ]


def test_no_service_waits_for_another():
    assert all(service.depends_on == [] for service in COMPOSE.services.values())


def test_every_mounted_file_exists():
    used = {volume.split(":")[0] for one in COMPOSE.services.values() for volume in one.volumes}
    paths = {volume for volume in used if volume.startswith(".")}
    assert used - paths == set(COMPOSE.volumes)
    assert paths
    assert all((FOLDER / path).is_file() for path in paths)


def test_the_image_is_built_from_its_dockerfile_and_keeps_its_data_in_the_volume():
    assert DYNACTOR.build is not None
    dockerfile = FOLDER / DYNACTOR.build.context / DYNACTOR.build.dockerfile
    (declared,) = stages(dockerfile)[-1].all("VOLUME")
    assert [volume.split(":")[1] for volume in DYNACTOR.volumes] == [declared]


def test_every_service_reports_its_health():
    for service in (KAFKA, PROMETHEUS):
        assert service.healthcheck is not None
        assert service.healthcheck.test[0] == "CMD"
    assert stages(FOLDER / "Dockerfile")[-1].health_check


def test_every_variable_of_the_server_is_an_option():
    told = subprocess.run(
        [sys.executable, "-m", "dynactor", "serve", "--help"],
        cwd=PROJECT,
        env={**os.environ, "COLUMNS": "500"},
        capture_output=True,
        text=True,
        check=True,
    )
    options = set(re.findall(r"DYNACTOR_\w+", told.stdout))
    image = stages(FOLDER / "Dockerfile")[-1].environment
    given = {name for name in {**image, **DYNACTOR.environment} if name.startswith("DYNACTOR_")}
    assert given <= options


def test_the_server_connects_to_kafka_at_an_address_that_containers_can_resolve():
    bootstrap_servers = DYNACTOR.environment["DYNACTOR_KAFKA_BOOTSTRAP_SERVERS"]
    advertised = KAFKA.environment["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert f"CONTAINERS://{bootstrap_servers}" in advertised
    assert bootstrap_servers.split(":")[0] in COMPOSE.services


def test_prometheus_scrapes_the_admin_port_by_a_host_name_that_the_server_accepts():
    name, port = (
        DYNACTOR.environment["DYNACTOR_ALLOWED_HOSTS"],
        DYNACTOR.environment["DYNACTOR_ADMIN_PORT"],
    )
    scrape = msgspec.yaml.decode((FOLDER / "prometheus" / "prometheus.yaml").read_bytes())
    (job,) = scrape["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"{name}:{port}"]}]
    assert name in COMPOSE.services
    published = {re.sub(r".*:", "", text) for text in DYNACTOR.ports}
    assert port in published

"""Reads the compose file into types for the parts of the Compose specification that it uses.

Reading fails if the file has a member that is not defined here, or one of another type. Source:
https://github.com/compose-spec/compose-spec/blob/main/spec.md
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from tests.support.servers.server import PROJECT

COMPOSE_FILE = PROJECT / "compose" / "compose.yaml"
CLUSTER_FILE = PROJECT / "compose" / "cluster.yaml"
Duration = Annotated[str, Meta(pattern=r"^([0-9]+(ms|s|m|h))+$")]
# An image has a version, never "latest", so that users run the tested image.
Image = Annotated[str, Meta(pattern=r"^[a-z0-9./-]+(:v?[0-9][\w.-]*)?$")]
Port = Annotated[str, Meta(pattern=r"^127\.0\.0\.1:[0-9]+:[0-9]+$")]
Volume = Annotated[str, Meta(pattern=r"^[\w./-]+:/[\w./-]+(:ro)?$")]


class Build(Struct, forbid_unknown_fields=True):
    """The source of an image; paths are relative to the compose file."""

    context: str
    dockerfile: str


class HealthCheck(Struct, forbid_unknown_fields=True):
    """A command that runs in the container; exit code 0 means healthy."""

    test: list[str]
    interval: Duration
    timeout: Duration
    retries: int = 3
    start_period: Duration = "0s"


class Service(Struct, forbid_unknown_fields=True):
    """A service, which is one container."""

    image: Image
    restart: str
    build: Build | None = None
    environment: dict[str, str] = {}
    ports: list[Port] = []
    volumes: list[Volume] = []
    healthcheck: HealthCheck | None = None
    stop_grace_period: Duration = "10s"
    profiles: list[str] = []
    depends_on: list[str] = []
    secrets: list[str] = []


class Secret(Struct, forbid_unknown_fields=True):
    """A secret, whose value is that of a variable of the caller."""

    environment: str


class Compose(Struct, forbid_unknown_fields=True):
    """A compose file."""

    name: str
    services: dict[str, Service]
    volumes: dict[str, None]
    secrets: dict[str, Secret] = {}


def read_compose_file(path: Path = COMPOSE_FILE) -> Compose:
    """Read the compose file.

    Raises:
        msgspec.ValidationError: a part is not in the specification, or not defined here.
    """
    return msgspec.yaml.decode(path.read_bytes(), type=Compose)

"""The compose file of a cluster: its nodes differ in their address only, and its parts fit."""

from __future__ import annotations

import re
from pathlib import Path

from dynactor.api.options.read_settings import read_settings
from tests.support.environment.compose_file import CLUSTER_FILE, read_compose_file

COMPOSE = read_compose_file(CLUSTER_FILE)
NODES = {name: each for name, each in COMPOSE.services.items() if name.startswith("node")}
BALANCER = CLUSTER_FILE.parent / "cluster" / "haproxy.cfg"


def test_each_node_listens_at_its_own_name() -> None:
    assert len(NODES) == 3
    for name, node in NODES.items():
        assert node.environment["DYNACTOR_PEER_LISTEN"] == f"{name}:7000"
    common = [
        {**node.environment, "DYNACTOR_PEER_LISTEN": "", "secrets": str(node.secrets)}
        for node in NODES.values()
    ]
    assert common[0] == common[1] == common[2]


def test_the_nodes_accept_their_variables(tmp_path: Path) -> None:
    environment = NODES["node1"].environment
    (tmp_path / "peer").write_text("0123456789abcdef")
    assert environment["DYNACTOR_PEER_SECRET_FILE"] == "/run/secrets/peer"
    assert set(COMPOSE.secrets) == set(NODES["node1"].secrets) == {"peer"}
    settings = read_settings(
        peer_listen=environment["DYNACTOR_PEER_LISTEN"],
        peer_secret_file=tmp_path / "peer",
        store=environment["DYNACTOR_STORE"],
        admin_host=environment["DYNACTOR_ADMIN_HOST"],
        admin_port=int(environment["DYNACTOR_ADMIN_PORT"]),
        allow_open=True,
    )
    assert settings.store.url is not None
    assert settings.store.url.partition("@")[2].partition("/")[0] in COMPOSE.services


def test_the_load_balancer_has_all_nodes_and_asks_for_their_readiness() -> None:
    text = BALANCER.read_text()
    servers = dict(re.findall(r"^ +server (\w+) (\S+)$", text, re.MULTILINE))
    assert servers == {name: f"{name}:8000" for name in NODES}
    port = NODES["node1"].environment["DYNACTOR_ADMIN_PORT"]
    assert f"check inter 500ms fall 1 rise 1 port {port}" in text
    assert "httpchk GET /ready" in text
    mounted = COMPOSE.services["balancer"].volumes[0].split(":")[0]
    assert (CLUSTER_FILE.parent / mounted).resolve() == BALANCER

"""The options for several nodes, and values that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dynactor.api.options.read_settings import read_settings
from dynactor.model.configuration_error import ConfigurationError

STORE = "postgresql://dynactor@localhost/dynactor"
LOOPBACK = "127.0.0.1:7000"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"node_name": "a"}, "give --peer-listen"),
        ({"peer_secret_file": Path("secret")}, "give --peer-listen"),
        ({"peer_ca": Path("ca.pem")}, "give --peer-listen"),
        ({"peer_advertise": "10.0.0.5:7000"}, "give --peer-listen"),
        ({"peer_listen": LOOPBACK, "peer_advertise": "7000"}, "--peer-advertise 7000 is not"),
        ({"peer_listen": LOOPBACK, "peer_advertise": "[::]:7000"}, "other nodes reach this one"),
        ({"peer_listen": LOOPBACK, "peer_advertise": "node:0"}, "other nodes reach this one"),
        ({"peer_listen": "0.0.0.0:7000", "peer_advertise": "10.0.0.5:1"}, "--peer-secret-file"),
        ({"peer_listen": "7000"}, "give HOST:PORT"),
        ({"peer_listen": "http://host:7000"}, "give HOST:PORT"),
        ({"peer_listen": "host:70000"}, "give HOST:PORT"),
        ({"peer_listen": "0.0.0.0:7000"}, "give the address at which other nodes reach"),
        ({"peer_listen": "[::]:7000"}, "give the address at which other nodes reach"),
        ({"peer_listen": "10.0.0.5:7000"}, "give --peer-secret-file"),
        ({"peer_listen": "db.example.com:7000"}, "give --peer-secret-file"),
        ({"peer_listen": LOOPBACK, "node_name": ""}, "1 to 100 characters"),
        (
            {"peer_listen": LOOPBACK, "peer_secret_file": Path("/nonexistent")},
            "--peer-secret-file /nonexistent can't be read",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told.replace("(", r"\(")):
        read_settings(store=STORE, **given)


def test_a_secret_allows_other_machines(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0123456789abcdef\n")
    nodes = read_settings(
        store=STORE, peer_listen="[fd00::5]:7000", peer_secret_file=tmp_path / "secret"
    ).nodes
    assert (nodes.secret, nodes.address) == ("0123456789abcdef", ("fd00::5", 7000))
    assert nodes.address_at(7000) == nodes.name_at(7000) == "[fd00::5]:7000"


def test_other_nodes_reach_a_node_at_its_advertised_address(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0123456789abcdef\n")
    nodes = read_settings(
        store=STORE,
        peer_listen="0.0.0.0:0",
        peer_advertise="node1.example.com:7000",
        peer_secret_file=tmp_path / "secret",
    ).nodes
    assert nodes.address_at(43_210) == nodes.name_at(43_210) == "node1.example.com:7000"


def test_loopback_needs_no_secret_and_a_name_is_used() -> None:
    nodes = read_settings(store=STORE, peer_listen="localhost:0", node_name="a").nodes
    assert (nodes.secret, nodes.name_at(7001), nodes.address_at(7001)) == (
        "",
        "a",
        "localhost:7001",
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"in_memory": True}, "needs --store postgresql://"),
        ({"store": STORE, "virtual_clock": "now"}, "combined with --virtual-clock"),
        ({"store": STORE, "allow_reset": True}, "combined with --allow-reset"),
        ({"store": STORE, "allow_faults": True}, "combined with --allow-faults"),
        ({"store": STORE, "credentials_file": Path("keys")}, "needs --peer-secret-file"),
    ],
)
def test_a_node_needs_a_shared_store_and_real_time(given: dict[str, Any], told: str) -> None:
    assert read_settings(store=STORE, peer_listen=LOOPBACK).is_node
    with pytest.raises(ConfigurationError, match=told):
        read_settings(peer_listen=LOOPBACK, **given)

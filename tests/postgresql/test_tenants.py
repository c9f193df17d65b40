"""Tenants share a table on PostgreSQL, on one server and on three nodes.

By default each test sends a few hundred requests. ``--rounds 100`` sends 100,000.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path

from tests.support.access.tenants_over_http import access_options, send_requests
from tests.support.servers.cluster import running_cluster
from tests.support.servers.load_balancer import balanced
from tests.support.servers.postgresql import Postgresql
from tests.support.servers.server import running

FEW = 300
PER_ROUND = 1_000
PORTS = ("--port", "0", "--admin-port", "0")
SECRET = "0123456789abcdef"


def check_both_outcomes(outcomes: Counter[tuple[str, bool]]) -> None:
    for operation in ("GetItem", "Query", "TransactWriteItems", "ExecuteStatement"):
        assert outcomes[operation, True]
        assert outcomes[operation, False]


def count_of(rounds: int | None) -> int:
    return FEW if rounds is None else rounds * PER_ROUND


def test_a_tenant_reaches_no_item_of_another(
    postgresql: Postgresql, rounds: int | None, tmp_path: Path
) -> None:
    options = (*postgresql.place_options(None), *access_options(tmp_path))
    with running([sys.executable, "-m", "dynactor", "serve", *PORTS, *options]) as server:
        check_both_outcomes(asyncio.run(send_requests(server.endpoint, count_of(rounds))))


def test_a_tenant_reaches_no_item_of_another_through_any_node(
    postgresql: Postgresql, rounds: int | None, tmp_path: Path
) -> None:
    secret = tmp_path / "peer-secret"
    secret.write_text(SECRET)
    options = (*access_options(tmp_path), "--peer-secret-file", str(secret))
    with (
        running_cluster(postgresql.url(), arguments=options) as cluster,
        balanced(cluster.ports) as endpoint,
    ):
        check_both_outcomes(asyncio.run(send_requests(endpoint, count_of(rounds))))

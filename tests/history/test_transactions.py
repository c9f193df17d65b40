"""Transactions are strictly serializable, with each other and with requests on single items."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from tests.support.histories.history_bank import TOTAL, BankClients
from tests.support.histories.history_figures import Figures
from tests.support.histories.history_serial import check
from tests.support.histories.restarting_server import MakeServer
from tests.support.servers.history_server import StoreFaults


async def test_transactions_are_strictly_serializable(
    make_server: MakeServer,
    seed: int,
    enough: int,
    record_property: Callable[[str, object], None],
) -> None:
    began = monotonic()
    is_on_one_item = seed % 5 == 1
    most_milliseconds = 50 if seed % 2 == 0 else 10
    delay = f"random:0-{most_milliseconds / 1000}:{seed}"
    faults = StoreFaults(seed, most_milliseconds)
    server = make_server(faults, "--transaction-delay", delay)
    clients = BankClients(server, enough, hot_share=1.0 if is_on_one_item else 0.2)
    kills_at = [server.draw.randrange(enough // 4, enough)] if server.fault else []

    with server.running():
        await clients.run(kills_at)

    assert [str(anomaly) for anomaly in check(clients.history)] == []
    assert set(clients.totals) == {TOTAL}
    assert server.timeouts == 0
    fewest_commits = min(clients.commits.values())
    assert fewest_commits > 0
    assert clients.conflicts > 0
    overlapping = clients.overlapping_on_hot
    if is_on_one_item:
        assert overlapping >= clients.progress.count / 2
    figures = Figures(
        operations=clients.progress.count,
        overlapping=overlapping,
        kills=server.kills,
        unknown=clients.unknown,
        conflicts=clients.conflicts,
        fewest_commits=fewest_commits,
        retries=tuple(clients.retries),
        seconds=monotonic() - began,
    )
    record_property("transactions", figures.packed())

"""Operations on one item are linearizable, on a slow store and over kills and power cuts."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from tests.support.histories.history import check
from tests.support.histories.history_figures import Figures
from tests.support.histories.history_registers import RegisterClients
from tests.support.histories.restarting_server import MakeServer
from tests.support.servers.history_server import StoreFaults


async def test_single_items_are_linearizable(
    make_server: MakeServer,
    seed: int,
    enough: int,
    record_property: Callable[[str, object], None],
) -> None:
    began = monotonic()
    is_of_one_item = seed % 5 == 1
    server = make_server(StoreFaults(seed))
    clients = RegisterClients(server, enough, hot_share=1.0 if is_of_one_item else 0.25)
    kills_at = [server.draw.randrange(enough // 4, enough)] if server.fault else []

    with server.running():
        await clients.run(kills_at)

    assert [str(violation) for violation in check(clients.history)] == []
    assert server.timeouts == 0
    overlapping = clients.overlapping_on_hot()
    assert overlapping >= clients.progress.count / 5
    figures = Figures(
        operations=clients.progress.count,
        overlapping=overlapping,
        kills=server.kills,
        unknown=clients.unanswered,
        seconds=monotonic() - began,
    )
    record_property("single items", figures.packed())

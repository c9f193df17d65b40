"""The checkers find each bug that is planted in the server."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from tests.support.histories import history, history_serial
from tests.support.histories.history_bank import BankClients
from tests.support.histories.history_bugs import Bug
from tests.support.histories.history_registers import RegisterClients
from tests.support.histories.restarting_server import RestartingServer
from tests.support.servers.history_server import StoreFaults


class Scene(NamedTuple):
    """The parameters of a history that reveals a bug; ``kills_at`` are numbers of operations."""

    operations: int = 200
    kills_at: tuple[int, ...] = ()
    power: bool = False
    read_share: float = 0.3
    quiet_rounds: int = 0


KILLED: Final = Scene(240, kills_at=(80, 160))
# Only a power cut loses unsynced data, and clients must have read the data before.
POWERLESS: Final = Scene(400, kills_at=(150, 300), power=True, read_share=0.8)

# A single client reads after each of its writes, so no order explains a stale read.
STALE: Final = Scene(quiet_rounds=14)

# The first few bugs show in any short history; the others need the long run.
IN_SINGLE_ITEMS: Final[dict[Bug, Scene]] = {
    "lost update": Scene(),
    "unsynced read": POWERLESS,
    "stale read": STALE,
    "answer before it is durable": Scene(),
}
IN_TRANSACTIONS: Final[dict[Bug, Scene]] = {
    "answer before its decision": Scene(),
    "half a transaction": KILLED,
    "lost update": Scene(),
    "stale read": STALE,
    "answer before it is durable": Scene(),
    "unsynced read": POWERLESS,
}


async def test_a_planted_bug_shows_in_histories_of_single_items(
    tmp_path: Path, single_item_bug: Bug
) -> None:
    scene = IN_SINGLE_ITEMS[single_item_bug]
    faults = StoreFaults(1, bug=single_item_bug)
    server = RestartingServer(tmp_path, faults, fault="power" if scene.power else "server")
    clients = RegisterClients(server, scene.operations, hot_share=0.5, read_share=scene.read_share)

    with server.running():
        await clients.run(scene.kills_at, scene.quiet_rounds)

    assert history.check(clients.history) != []


async def test_a_planted_bug_shows_in_histories_of_transactions(
    tmp_path: Path, transaction_bug: Bug
) -> None:
    scene = IN_TRANSACTIONS[transaction_bug]
    faults = StoreFaults(1, 20, transaction_bug)
    delay = ("--transaction-delay", "random:0-0.02:1")
    server = RestartingServer(tmp_path, faults, *delay, fault="power" if scene.power else "server")
    clients = BankClients(server, scene.operations, hot_share=0.3, get_share=scene.read_share)

    with server.running():
        await clients.run(scene.kills_at, scene.quiet_rounds)

    assert history_serial.check(clients.history) != []

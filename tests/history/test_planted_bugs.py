"""The checkers find bugs that were planted in the server, one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from tests.support.histories import history, history_serial
from tests.support.histories.history_arena import Arena
from tests.support.histories.history_bank import BankCrowd
from tests.support.histories.history_bugs import Bug
from tests.support.histories.history_registers import RegisterCrowd
from tests.support.servers.history_server import Trouble


class Scene(NamedTuple):
    """The history that reveals a bug; ``kills_at`` is in operations."""

    operations: int = 200
    kills_at: tuple[int, ...] = ()
    power: bool = False
    read_share: float = 0.3
    quiet_rounds: int = 0


KILLED: Final = Scene(240, kills_at=(80, 160))
# Only a power cut loses unsynced data, which must have been read before.
POWERLESS: Final = Scene(400, kills_at=(150, 300), power=True, read_share=0.8)

# A read after a write of the same single client: if it is stale, no order explains it.
STALE: Final = Scene(quiet_rounds=14)

# The first few show in any short history; the others need the long run.
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
    trouble = Trouble(1, bug=single_item_bug)
    arena = Arena(tmp_path, trouble, power=scene.power)
    crowd = RegisterCrowd(arena, scene.operations, hot_share=0.5, read_share=scene.read_share)

    with arena.running():
        await crowd.run(scene.kills_at, scene.quiet_rounds)

    assert history.check(crowd.history) != []


async def test_a_planted_bug_shows_in_histories_of_transactions(
    tmp_path: Path, transaction_bug: Bug
) -> None:
    scene = IN_TRANSACTIONS[transaction_bug]
    trouble = Trouble(1, 20, transaction_bug)
    delay = ("--transaction-delay", "random:0-0.02:1")
    arena = Arena(tmp_path, trouble, *delay, power=scene.power)
    crowd = BankCrowd(arena, scene.operations, hot_share=0.3, get_share=scene.read_share)

    with arena.running():
        await crowd.run(scene.kills_at, scene.quiet_rounds)

    assert history_serial.check(crowd.history) != []

"""The checkers find bugs that were planted in the server, one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import history_serial
from tests.support.history import check
from tests.support.history_arena import Arena
from tests.support.history_bank import BankCrowd
from tests.support.history_bugs import Bug
from tests.support.history_registers import RegisterCrowd
from tests.support.history_server import Trouble


@pytest.mark.parametrize("bug", ["stale read", "lost update", "answer before it is durable"])
async def test_a_bug_shows_in_histories_of_single_items(tmp_path: Path, bug: Bug) -> None:
    arena = Arena(tmp_path, Trouble(1, bug=bug))
    crowd = RegisterCrowd(arena, 300, hot_share=0.5)

    with arena.running():
        await crowd.run()

    assert check(crowd.history) != []


async def test_a_read_of_what_was_not_synced_shows_when_the_power_is_cut(tmp_path: Path) -> None:
    arena = Arena(tmp_path, Trouble(1, bug="unsynced read"), power=True)
    crowd = RegisterCrowd(arena, 400, hot_share=0.5, read_share=0.8)

    with arena.running():
        await crowd.run([150, 300])

    assert check(crowd.history) != []


@pytest.mark.parametrize(
    "bug",
    [
        "stale read",
        "lost update",
        "answer before it is durable",
        "answer before its decision",
    ],
)
async def test_a_bug_shows_in_histories_of_transactions(tmp_path: Path, bug: Bug) -> None:
    arena = Arena(tmp_path, Trouble(1, 20, bug), "--transaction-delay", "random:0-0.02:1")
    crowd = BankCrowd(arena, 300, hot_share=0.2)

    with arena.running():
        await crowd.run()

    assert history_serial.check(crowd.history) != []


async def test_half_a_transaction_is_left_by_a_kill(tmp_path: Path) -> None:
    trouble = Trouble(1, 20, "half a transaction")
    arena = Arena(tmp_path, trouble, "--transaction-delay", "random:0-0.02:1")
    crowd = BankCrowd(arena, 240, hot_share=0.2)

    with arena.running():
        await crowd.run([80, 160])

    assert history_serial.check(crowd.history) != []


async def test_a_transaction_read_unsynced_shows_when_the_power_is_cut(tmp_path: Path) -> None:
    trouble = Trouble(1, 20, "unsynced read")
    arena = Arena(tmp_path, trouble, "--transaction-delay", "random:0-0.02:1", power=True)
    crowd = BankCrowd(arena, 400, hot_share=0.5, get_share=0.8)

    with arena.running():
        await crowd.run([150, 300])

    assert history_serial.check(crowd.history) != []

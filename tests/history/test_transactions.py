"""Transactions are strictly serializable, with each other and with requests on single items."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from tests.support.histories.history_arena import Arena
from tests.support.histories.history_bank import TOTAL, BankCrowd
from tests.support.histories.history_figures import Figures
from tests.support.histories.history_serial import check
from tests.support.servers.history_server import Trouble


async def test_transactions_are_strictly_serializable(
    tmp_path: Path, seed: int, enough: int, record_property: Callable[[str, object], None]
) -> None:
    began = monotonic()
    is_killed, is_cut, is_on_one_item = seed % 4 == 0, seed % 8 == 0, seed % 5 == 1
    most_milliseconds = 50 if seed % 2 == 0 else 10
    delay = f"random:0-{most_milliseconds / 1000}:{seed}"
    trouble = Trouble(seed, most_milliseconds)
    arena = Arena(tmp_path, trouble, "--transaction-delay", delay, power=is_cut)
    crowd = BankCrowd(arena, enough, hot_share=1.0 if is_on_one_item else 0.2)
    kills_at = [arena.draw.randrange(enough // 4, enough)] if is_killed else []

    with arena.running():
        await crowd.run(kills_at)

    assert [str(anomaly) for anomaly in check(crowd.history)] == []
    assert set(crowd.totals) == {TOTAL}
    assert arena.timeouts == 0
    fewest_commits = min(crowd.commits.values())
    assert fewest_commits > 0
    assert crowd.conflicts > 0
    overlapping = crowd.overlapping_on_hot
    if is_on_one_item:
        assert overlapping >= crowd.progress.count / 2
    figures = Figures(
        operations=crowd.progress.count,
        overlapping=overlapping,
        kills=arena.kills,
        unknown=crowd.unknown,
        conflicts=crowd.conflicts,
        fewest_commits=fewest_commits,
        retries=tuple(crowd.retries),
        seconds=monotonic() - began,
    )
    record_property("transactions", figures.packed())

"""Operations on one item are linearizable, on a slow store and over kills and power cuts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from tests.support.histories.history import check
from tests.support.histories.history_arena import Arena
from tests.support.histories.history_figures import Figures
from tests.support.histories.history_registers import RegisterCrowd
from tests.support.servers.history_server import Trouble


async def test_single_items_are_linearizable(
    tmp_path: Path, seed: int, enough: int, record_property: Callable[[str, object], None]
) -> None:
    began = monotonic()
    is_killed, is_cut, is_of_one_item = seed % 4 == 0, seed % 8 == 0, seed % 5 == 1
    arena = Arena(tmp_path, Trouble(seed), power=is_cut)
    crowd = RegisterCrowd(arena, enough, hot_share=1.0 if is_of_one_item else 0.25)
    kills_at = [arena.draw.randrange(enough // 4, enough)] if is_killed else []

    with arena.running():
        await crowd.run(kills_at)

    assert [str(violation) for violation in check(crowd.history)] == []
    assert arena.timeouts == 0
    overlapping = crowd.overlapping_on_hot()
    assert overlapping >= crowd.progress.count / 5
    figures = Figures(
        operations=crowd.progress.count,
        overlapping=overlapping,
        kills=arena.kills,
        unknown=crowd.unanswered,
        seconds=monotonic() - began,
    )
    record_property("single items", figures.packed())

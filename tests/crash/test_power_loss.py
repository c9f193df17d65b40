"""Power cuts under load: some or all unsynced writes are lost."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

from tests.support.servers.server import PROJECT
from tests.support.writers.crashes import CrashingDatabase

FEW_ROUNDS = 5


async def test_every_acknowledged_write_survives_a_power_cut(
    tmp_path: Path, rounds: int | None
) -> None:
    draw = Random(2)
    database = CrashingDatabase(tmp_path, draw, power=True)
    await database.make()

    for _ in range(rounds or FEW_ROUNDS):
        assert await database.crash() == []
        # The next round must find everything that this round's start showed, even after a power
        # cut.
        if draw.random() < 0.8:
            database.cut_power()
        if draw.random() < 0.2:
            await database.kill_while_starting()
            database.cut_power()

    assert await database.compare() == []


async def test_data_shown_after_a_restart_survives_a_power_cut(tmp_path: Path) -> None:
    database = CrashingDatabase(tmp_path, Random(3), power=True)
    await database.make()
    assert await database.crash() == []

    assert await database.compare(then_kill=True) == []
    database.cut_power()

    assert await database.compare() == []


async def test_a_server_that_does_not_wait_for_syncs_loses_writes(tmp_path: Path) -> None:
    """Proves that the simulated power cut really loses unsynced writes."""
    database = CrashingDatabase(
        tmp_path, Random(4), power=True, project=without_the_wait(tmp_path / "project")
    )
    await database.make()
    power = database.power
    assert power is not None

    assert await database.crash(fault=power.hold_syncs) == []
    power.release_syncs()
    assert await database.crash(fault=power.hold_syncs) == [], "a mere kill takes nothing away"
    power.release_syncs()
    power.cut()

    found = await database.compare()
    assert any("no order explains these answers" in each for each in found)


def without_the_wait(copy: Path) -> Path:
    """A copy of the source that acknowledges and shows writes before their sync has returned."""
    shutil.copytree(PROJECT / "dynactor", copy / "dynactor")
    replace(
        copy / "dynactor" / "storage" / "rocks" / "store.py",
        {
            "        return self._synchronizer.accepted()\n": (
                "        self._synchronizer.accepted()\n"
                "        self._durable = self._take_mark().view\n"
                "        answered = asyncio.get_running_loop().create_future()\n"
                "        answered.set_result(None)\n"
                "        return answered\n"
            ),
            "publish=self._publish,": "publish=lambda _: None,",
        },
    )
    return copy


def replace(path: Path, changes: dict[str, str]) -> None:
    """Change a source file; each text must occur once."""
    source = path.read_text()
    for old, new in changes.items():
        assert source.count(old) == 1, f"{path.name} no longer has {old!r}"
        source = source.replace(old, new)
    path.write_text(source)

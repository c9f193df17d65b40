"""The phase machine completes all phases, even if the store refuses commits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dynactor.actors.parts.phase_machine import GONE, EndPhase, Phase, PhaseMachine, Subject
from dynactor.actors.runtime.mailbox import Message
from dynactor.storage.store import Full, Group, Store
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

LAMP = Subject(1, "lamp")
HEAD = b"\xffhead"


class Lamp:
    """The subject whose phases the test runs, and its stored phase, which is the row ``HEAD``."""

    def __init__(self, store: Store) -> None:
        self.phase: str | None = None
        self._store = store
        self._head: bytes | None = None

    async def load(self) -> None:
        """Read the stored state."""
        (self._head,) = await self._store.latest.load([HEAD])
        self.phase = None if not self._head else self._head.decode()

    async def put(self, phase: str | None) -> None:
        """Store a phase; None deletes the lamp."""
        head = (phase or "").encode()
        await (await self._store.commit([Group(HEAD, self._head, head)]))
        self._head, self.phase = head, phase


class House:
    """The actor that owns the lamp: a phase machine, its messages, and the work in progress.

    The phases: NEW ends after 5 seconds. FILLING ends with its work and is followed by CATCHING_UP,
    which is not stored. DONE never ends. GOING ends with the deletion of the lamp.
    """

    def __init__(self, store: Store) -> None:
        self.lamp = Lamp(store)
        self.told: deque[tuple[float, EndPhase]] = deque()
        self.started: list[str] = []
        # The phase that was stored at the end of each phase.
        self.left_for: list[str | None] = []
        # Notifies the machine that the present work has ended.
        self.over: Callable[[], None] | None = None
        # The phase whose start fails once.
        self.failing: str | None = None
        self.machine = PhaseMachine(
            "lamp",
            self._phases(),
            find=lambda _: self.lamp if self.lamp.phase else None,
            stored_phase=lambda lamp: lamp.phase or "",
            tell=self._tell,
        )

    def _phases(self) -> Mapping[str, Phase[Lamp]]:
        return {
            "NEW": Phase(("FILLING",), seconds=5.0, leave=self._leave_for("FILLING")),
            "FILLING": Phase(("CATCHING_UP",), self._start("FILLING"), leave=_catch_up),
            "CATCHING_UP": Phase(
                ("DONE",),
                self._start("CATCHING_UP"),
                leave=self._leave_for("DONE"),
                stored_as="FILLING",
            ),
            "DONE": Phase(start=self._start("DONE")),
            "GOING": Phase((GONE,), seconds=5.0, leave=self._leave_for(GONE)),
        }

    def _leave_for(self, phase: str | None) -> Callable[[Lamp], Any]:
        async def leave(lamp: Lamp) -> str | None:
            await lamp.put(phase)
            self.left_for.append(phase)
            return phase

        return leave

    def _start(self, phase: str) -> Callable[[Lamp, Callable[[], None]], Any]:
        async def start(_: Lamp, over: Callable[[], None]) -> None:
            if self.failing == phase:
                self.failing = None
                raise Full("the disk is full")
            self.started.append(phase)
            self.over = over

        return start

    def _tell(self, seconds: float, message: Message[Any]) -> None:
        assert isinstance(message, EndPhase)
        self.told.append((seconds, message))

    def take(self) -> EndPhase:
        """Remove and return the oldest message."""
        return self.told.popleft()[1]

    def end_work(self) -> EndPhase:
        """End the present work; return the message that this sends."""
        assert self.over is not None
        self.over()
        return self.take()

    async def crash(self) -> None:
        """Discard the state in memory, and load the stored state."""
        self.machine.forget()
        await self.lamp.load()
        await self.machine.resume(LAMP)


async def _catch_up(_: Lamp) -> str:
    return "CATCHING_UP"


async def begun(store: Store, phase: str = "NEW") -> House:
    house = House(store)
    await house.lamp.put(phase)
    await house.machine.resume(LAMP)
    return house


async def go_on(house: House) -> None:
    """Deliver messages and end work until neither remains."""
    for _ in range(10):
        if house.told:
            await house.machine.end(house.take())
        elif house.over is not None and house.lamp.phase != "DONE":
            over, house.over = house.over, None
            over()


async def test_each_phase_is_started_once_and_stored_before():
    async with memory_store() as store:
        house = await begun(store)
        assert house.told[0][0] == 5.0
        await house.machine.resume(LAMP)
        assert len(house.told) == 1
        await house.machine.end(house.take())
        assert (house.lamp.phase, house.started) == ("FILLING", ["FILLING"])
        await house.machine.end(house.end_work())
        assert (house.lamp.phase, house.started[-1]) == ("FILLING", "CATCHING_UP")
        await house.machine.resume(LAMP)
        await house.machine.end(house.end_work())
        assert (house.lamp.phase, house.started) == ("DONE", ["FILLING", "CATCHING_UP", "DONE"])


async def test_a_late_message_of_an_earlier_phase_changes_nothing():
    async with memory_store() as store:
        house = await begun(store)
        late = house.take()
        assert await house.machine.end(late)
        assert not await house.machine.end(late)
        await house.lamp.put("GOING")
        # Another owner has stored a new phase, which the machine enters before the earlier work
        # ends.
        await house.machine.resume(LAMP)
        assert house.over is not None
        house.over()
        going, ended = house.take(), house.take()
        assert not await house.machine.end(ended)
        assert await house.machine.end(going)
        assert house.lamp.phase is None
        assert not await house.machine.end(going)


async def test_a_phase_change_that_the_store_refused_is_repeated_with_the_next_message():
    async with memory_store() as inner:
        store = FaultyStore(inner)
        house = await begun(store)
        store.refuse_commits(Full("the disk is full"))
        message = house.take()
        for _ in range(3):
            with pytest.raises(Full):
                await house.machine.end(message)
            assert (house.lamp.phase, house.started) == ("NEW", [])
        store.allow_commits()
        await house.machine.end(message)
        assert (house.lamp.phase, house.started) == ("FILLING", ["FILLING"])


async def test_a_phase_whose_start_failed_is_started_with_the_next_message():
    async with memory_store() as store:
        house = await begun(store)
        house.failing = "FILLING"
        message = house.take()
        with pytest.raises(Full):
            await house.machine.end(message)
        assert house.lamp.phase == "FILLING"
        await house.machine.end(message)
        assert (house.started, house.left_for) == (["FILLING"], ["FILLING"])
        await go_on(house)
        assert house.lamp.phase == "DONE"


@pytest.mark.parametrize("steps", range(6))
async def test_a_crash_after_each_step_ends_in_the_last_phase(steps: int):
    async with memory_store() as store:
        house = await begun(store)
        for _ in range(steps):
            if house.told:
                await house.machine.end(house.take())
            elif house.over is not None:
                over, house.over = house.over, None
                over()
        lost = list(house.told)
        house.told.clear()
        await house.crash()
        for _, message in lost:
            assert not await house.machine.end(message)
        await go_on(house)
        assert (house.lamp.phase, house.started[-1]) == ("DONE", "DONE")


async def test_a_deleted_subject_has_no_phase():
    async with memory_store() as store:
        house = await begun(store)
        message = house.take()
        house.lamp.phase = None
        assert not await house.machine.end(message)
        await house.machine.resume(LAMP)
        assert not house.told


async def test_forgotten_phases_are_entered_again():
    async with memory_store() as store:
        house = await begun(store, "DONE")
        house.machine.forget(table_id=2)
        await house.machine.resume(LAMP)
        assert house.started == ["DONE"]
        house.machine.forget(table_id=1)
        await house.machine.resume(LAMP)
        assert house.started == ["DONE", "DONE"]

"""Moves tables, indexes and other parts of the catalog through their phases.

Each kind of subject, such as global indexes, has a table of phases. The table says what each phase
starts, what ends it, what is stored at the end, and which phases may follow. The machine starts and
ends each phase once, and distinguishes a late message from a current one.

The stored phase takes precedence over memory: after a crash, or when the stored phase has changed,
a subject enters its stored phase. ``leave`` commits the next phase before the machine enters it, so
a crash in between repeats only the start. If the store refuses the commit, the subject stays in its
phase, and the same message ends the phase later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, Final, Generic, NamedTuple, TypeVar

from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import OwnMessage
from dynactor.actors.table.table import Table
from dynactor.model.errors import DynamoDBError
from dynactor.storage.store import StoreError

T = TypeVar("T")

# ``leave`` and ``then`` use this name for a subject that no longer exists.
GONE: Final = None


class Subject(NamedTuple):
    """A table, or with ``part_id`` a part of a table, such as an index."""

    table_id: int
    table_name: str
    part_id: int = 0


class EndPhase(OwnMessage, frozen=True):
    """The phase that a subject entered with this number has ended.

    Numbers rise and are not stored. A message for a phase that was left has no effect.
    """

    kind: str
    subject: Subject
    number: int


class Phase(NamedTuple, Generic[T]):
    """One phase of one kind of subject.

    ``start`` starts the work of the phase, unless the work is running already. The work calls the
    given function when the phase is over. ``seconds`` ends the phase after that time. ``leave``
    stores the next phase and returns its name, one of ``then``. A phase with ``stored_as`` exists
    only in memory: another phase's name is stored for it, and a restart begins with that one.
    """

    then: tuple[str | None, ...] = ()
    start: Callable[[T, Callable[[], None]], Awaitable[None]] | None = None
    seconds: float | None = None
    leave: Callable[[T], Awaitable[str | None]] | None = None
    stored_as: str | None = None


def update_phases(
    seconds: float, settle: Callable[[T], Awaitable[str | None]]
) -> Mapping[str, Phase[T]]:
    """The phases of settings, which differ from the requested ones while UPDATING."""
    return {
        "SETTLED": Phase(),
        "UPDATING": Phase(("SETTLED",), seconds=seconds, leave=settle),
    }


def whole_table(_table: Table) -> Iterable[int]:
    """The id of the only subject of a table, which is the table itself."""
    return (0,)


def table_subject(table: Table, part_id: int = 0) -> Subject:
    """A table, or a part of it, as a subject."""
    return Subject(table.definition.table_id, table.definition.name, part_id)


class _Entered(NamedTuple):
    """The current phase of a subject, and the number that its ``EndPhase`` must have."""

    name: str
    number: int


class PhaseMachine(Generic[T]):
    """Moves subjects of one kind to their next phases. Only the database's actor calls it.

    Invariant: for each subject in ``_entered``, the work of its phase is running.
    """

    def __init__(
        self,
        kind: str,
        phases: Mapping[str, Phase[T]],
        *,
        find: Callable[[Subject], T | None],
        stored_phase: Callable[[T], str],
        tell: Callable[[float, Message[Any]], None],
        part_ids: Callable[[Table], Iterable[int]] | None = whole_table,
    ) -> None:
        """``find`` returns the stored subject, or None if it no longer exists.

        ``tell`` sends a message to the database's actor after a number of seconds. ``part_ids``
        returns the subjects of a table; None if the subjects don't end with their table.
        """
        for phase in phases.values():
            assert all(name is GONE or name in phases for name in phase.then)
        self.kind = kind
        self._phases = phases
        self._find = find
        self._stored_phase = stored_phase
        self._tell = tell
        self._part_ids = part_ids
        self._numbers = count(1)
        self._entered: dict[Subject, _Entered] = {}
        # The subjects whose next phase the store refused; the phase is retried.
        self._refused: set[Subject] = set()

    @property
    def is_of_tables(self) -> bool:
        """Whether the subjects are tables or parts of tables."""
        return self._part_ids is not None

    @property
    def has_table_work(self) -> bool:
        """Whether closing a table stops the work of a phase. Otherwise phases only take time."""
        starts = any(phase.start is not None for phase in self._phases.values())
        return self.is_of_tables and starts

    async def resume_table(self, table: Table) -> None:
        """Resume all subjects of a table; raises ``StoreError`` or ``DynamoDBError``."""
        if self._part_ids is not None:
            for part_id in self._part_ids(table):
                await self.resume(table_subject(table, part_id))

    async def resume(self, subject: Subject) -> None:
        """Enter a subject's stored phase unless it is entered; raises as ``resume_table``."""
        thing = self._find(subject)
        if thing is None:
            self._entered.pop(subject, None)
            return
        stored = self._stored_phase(thing)
        entered = self._entered.get(subject)
        if entered is None or self._stored_name(entered.name) != stored:
            await self._enter(subject, thing, stored)

    async def restart(self, subject: Subject) -> None:
        """Enter the stored phase again, whose work was stopped; raises as ``resume_table``."""
        self._entered.pop(subject, None)
        await self.resume(subject)

    async def end(self, message: EndPhase) -> bool:
        """Leave a phase and enter the next one; return whether the phase was still current.

        After ``StoreError`` or ``DynamoDBError`` the same message continues from there.
        """
        subject = message.subject
        entered = self._entered.get(subject)
        if entered is None or entered.number != message.number:
            return False
        thing = self._find(subject)
        if thing is None:
            del self._entered[subject]
            return False
        name: str | None = self._stored_phase(thing)
        # An earlier attempt may have stored the next phase without starting it.
        if name == self._stored_name(entered.name):
            phase = self._phases[entered.name]
            assert phase.leave is not None
            name = await phase.leave(thing)
            assert name in phase.then, f"{self.kind}: {entered.name} leads to {name}"
        thing = self._find(subject)
        if name is GONE or thing is None:
            self._entered.pop(subject, None)
            return True
        assert self._stored_name(name) == self._stored_phase(thing)
        await self._enter(subject, thing, name)
        return True

    @contextmanager
    def trying(self, subject: Subject) -> Iterator[None]:
        """Note whether the store refuses the next phase of a subject."""
        try:
            yield
        except (StoreError, DynamoDBError):
            self._refused.add(subject)
            raise
        self._refused.discard(subject)

    def is_refused(self, table_id: int) -> bool:
        """Whether the store refuses the next phase of a table or of a part of it."""
        return any(subject.table_id == table_id for subject in self._refused)

    def forget(self, table_id: int | None = None) -> None:
        """Forget the phases of a table's subjects, or of all; ``resume`` enters them again."""
        for subject in [*self._entered, *self._refused]:
            if table_id is None or subject.table_id == table_id:
                self._entered.pop(subject, None)
                self._refused.discard(subject)

    async def _enter(self, subject: Subject, thing: T, name: str) -> None:
        phase = self._phases[name]
        number = next(self._numbers)
        over = EndPhase(self.kind, subject, number)
        if phase.start is not None:
            await phase.start(thing, partial(self._tell, 0.0, over))
        self._entered[subject] = _Entered(name, number)
        if phase.seconds is not None:
            self._tell(phase.seconds, over)

    def _stored_name(self, name: str) -> str:
        return self._phases[name].stored_as or name

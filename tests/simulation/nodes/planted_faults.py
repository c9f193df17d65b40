"""Plants faults one by one, and runs seeds until one of them finds the fault.

python -m tests.simulation.nodes.planted_faults [name ...]

Some faults are not possible, because the nodes have no such rule: no commit names a guard row, and
no read compares the catalog's version. Epochs of shares and of the leader replace both.
"""

from __future__ import annotations

import sys
from asyncio import Future
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Final, NamedTuple
from unittest.mock import patch

import anyio

from dynactor.actors.derived.kafka.topic_session import TopicSession
from dynactor.actors.parts.long_work import Work
from dynactor.api.nodes import forwarding
from dynactor.api.nodes.membership import Membership
from dynactor.api.nodes.spreading import Spreader
from dynactor.storage.postgresql import commits, locked
from dynactor.storage.postgresql import store as postgresql_store
from dynactor.storage.postgresql.commit_call import CommitCall
from dynactor.storage.postgresql.doubts import Doubts
from dynactor.storage.postgresql.sql import LEADER_SLOT, SLOT_SHIFT, WRITTEN_BEFORE
from dynactor.storage.postgresql.views import CommittedView
from dynactor.storage.store import Conflict, Group, Row, StoreError, Unavailable, Unknown
from tests.simulation.nodes.fake_postgresql import FakePostgresql, Session
from tests.simulation.nodes.forked import forked

_MOST_SEEDS: Final = 1_000
_APART_SECONDS: Final = 0.5


class PlantedFault(NamedTuple):
    """A fault, and how it is planted."""

    name: str
    planting: Callable[[], AbstractContextManager[object]]


def _takes_unknown_for_nothing(error: StoreError | None) -> Future[None]:
    if isinstance(error, Unknown):
        raise Unavailable(str(error))
    return _FUTURE_OF(error)


def _forgets_own_batch(said: int, *, in_doubt: bool) -> StoreError | None:
    if said == WRITTEN_BEFORE:
        return Conflict("a head is not the expected one")
    return _VERDICT(said, in_doubt=in_doubt)


def _keeps_all(*_: object) -> None:
    """Stand for doubts that nothing ends, and for clocks that nothing compares."""


async def _does_not_fence(*_: object, **__: object) -> bool:
    return True


class _SplitsBlindly(CommitCall):
    """A commit that does not compare the heads that it deletes."""

    def __init__(self, groups: Sequence[Group]) -> None:
        super().__init__(groups)
        ended = {group.head_key for group in groups if group.head is None}
        is_split = any(group.expected_head is None for group in groups)
        self._heads = {
            key: value for key, value in self._heads.items() if not is_split or key not in ended
        }


def _commits_again(server: FakePostgresql, session: Session, epoch: int) -> None:
    """Stand for an owner that repeats a refused commit with the epoch of its successor."""
    _OWN(server, session, server.epochs.get(max(LEADER_SLOT, epoch >> SLOT_SHIFT), epoch))


async def _reads_apart(
    view: CommittedView, keys: Sequence[bytes], start: bytes, end: bytes, **most: int
) -> tuple[list[bytes | None], list[Row]]:
    values = await view.load(keys)
    # Without a pause, the seeds would have to hit one millisecond.
    await anyio.sleep(_APART_SECONDS)
    return values, await view.page(start, end, **most)


async def _does_all_pieces(work: Work) -> None:
    while work.rest is not None:
        await _DO_PIECE(work)


async def _holds_early(spreader: Spreader, names: tuple[str, ...], share: int) -> None:
    async with spreader.holding(names):
        await _GIVE(spreader, names, share)


@contextmanager
def _work_in_one_piece() -> Iterator[None]:
    with (
        patch.object(Work, "do_piece", _does_all_pieces),
        patch.object(Spreader, "_give", _holds_early),
    ):
        yield


async def _forgets_positions(*_: object) -> dict[int, int]:
    return {}


@contextmanager
def _both(module: ModuleType, name: str, fault: object) -> Iterator[None]:
    """Replace a name in a module and in that of the store."""
    with patch.object(module, name, fault), patch.object(postgresql_store, name, fault):
        yield


_FUTURE_OF: Final = commits.future_of
_VERDICT: Final = commits._verdict
_OWN: Final = FakePostgresql._own
_DO_PIECE: Final = Work.do_piece
_GIVE: Final = Spreader._give

FAULTS: Final = (
    PlantedFault(
        "commits do not compare the epoch",
        lambda: patch.object(FakePostgresql, "guards_commits", False),
    ),
    PlantedFault(
        "a refused commit is repeated with the present epoch",
        lambda: patch.object(FakePostgresql, "_own", _commits_again),
    ),
    PlantedFault(
        "reads do not compare the epoch, so a former home refuses by what it has read",
        lambda: patch.object(FakePostgresql, "guards_reads", False),
    ),
    PlantedFault(
        "a new owner does not wait for the commits in flight",
        lambda: patch.object(FakePostgresql, "waits_for_commits", False),
    ),
    PlantedFault(
        "an unknown outcome counts as nothing written",
        lambda: _both(commits, "future_of", _takes_unknown_for_nothing),
    ),
    PlantedFault(
        "a repeated statement does not recognize its own batch",
        lambda: patch.object(commits, "_verdict", _forgets_own_batch),
    ),
    PlantedFault(
        "a node does not notice that its clock is wrong",
        lambda: patch.object(Membership, "_note_clock", _keeps_all),
    ),
    PlantedFault(
        "a doubt never ends",
        lambda: patch.object(Doubts, "_keep", _keeps_all),
    ),
    PlantedFault(
        "a forwarded write is sent again after its answer was lost",
        lambda: patch.object(forwarding, "is_read", lambda _: True),
    ),
    PlantedFault(
        "a split does not compare the head of the parent",
        lambda: _both(locked, "CommitCall", _SplitsBlindly),
    ),
    PlantedFault(
        "the leader takes tables without raising the epoch of their share",
        lambda: patch.object(postgresql_store._PostgresqlStore, "fence", _does_not_fence),
    ),
    PlantedFault(
        "the trim mark of a stream is read apart from the records, half a second earlier",
        lambda: patch.object(CommittedView, "load_with_page", _reads_apart),
    ),
    PlantedFault(
        "a relay starts at its checkpoints, not at the positions in Kafka",
        lambda: patch.object(TopicSession, "read_positions", _forgets_positions),
    ),
    PlantedFault(
        "a table is held while its move waits for the long work of the database's actor",
        _work_in_one_piece,
    ),
)


def main(names: Sequence[str]) -> int:
    """Plant the faults with these names, or all; return the exit status."""
    unfound = 0
    for fault in FAULTS:
        if names and fault.name not in names:
            continue
        for seed in range(1, _MOST_SEEDS + 1):
            outcome = forked(seed, planting=fault.planting)
            if outcome.violations:
                print(f"{fault.name}: found by seed {seed}", flush=True)
                print(f"    {outcome.violations[0][:300]}")
                break
            print(f"\r{fault.name}: {seed} seeds", end="", flush=True)
        else:
            unfound += 1
            print(f"\r{fault.name}: NOT FOUND in {_MOST_SEEDS} seeds")
    return bool(unfound)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

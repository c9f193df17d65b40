"""The comparison of indexes and streams detects faults that are planted in a server."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
import structlog
from msgspec import structs

from dynactor.actors.indexes.global_index import GlobalIndexActors
from dynactor.actors.partition.index_partition import ApplyChanges, IndexCore
from dynactor.actors.partition.table_core import TableCore
from dynactor.actors.phases import index_phases
from dynactor.actors.phases.index_phases import IndexPhases
from dynactor.streams import shard as shards
from tests.crash.test_index_messages import written_and_compared
from tests.support.servers.in_process import MessageFaults
from tests.support.writers.indexed_database import GlobalIndex

ANSWERS = 800
MOST_RUNS = 4
TIMEOUT_SECONDS = 0.5


def applies_old_messages_again(patch: pytest.MonkeyPatch) -> None:
    def apply(self, batch, message, _decision):
        match message:
            case ApplyChanges(changes=changes):
                rows = [(change.position, change.value) for change in changes]
            case backfill:
                rows = backfill.entries
        for position, value in rows:
            self._put(batch, position, value)

    patch.setattr(IndexCore, "apply", apply)


def omits_records(patch: pytest.MonkeyPatch) -> None:
    record, draw = TableCore._record, Random(1)

    def leaving_out(self, *what):
        if draw.random() > 0.02:
            record(self, *what)

    patch.setattr(TableCore, "_record", leaving_out)


def records_twice(patch: pytest.MonkeyPatch) -> None:
    record, draw = TableCore._record, Random(1)

    def twice(self, batch, *what):
        record(self, batch, *what)
        if draw.random() < 0.02:
            batch.counter += 1
            record(self, batch, *what)

    patch.setattr(TableCore, "_record", twice)


def records_unchanged_items(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TableCore, "has_effect", lambda _core, change: change.old or change.new)


def follows_logs_during_the_backfill(patch: pytest.MonkeyPatch) -> None:
    fill = IndexPhases._fill

    async def fill_and_follow(self, thing, over):
        await fill(self, thing, over)
        await self._follow_logs(thing)

    async def wait_alone(self, thing, over):
        actors = thing.table.followers.indexes[thing.index.definition.index_id]
        self._supervisor.run_in_background(index_phases._wait_caught_up, actors, over)

    patch.setattr(IndexPhases, "_fill", fill_and_follow)
    patch.setattr(IndexPhases, "_catch_up", wait_alone)


def loses_the_first_record_of_a_shard(patch: pytest.MonkeyPatch) -> None:
    rolled = shards.rolled

    def rolled_too_far(stream, *arguments):
        changed = rolled(stream, *arguments)
        known = {shard.shard_id for shard in stream.shards}
        return structs.replace(
            changed,
            shards=tuple(
                shard if shard.shard_id in known else structs.replace(shard, after=shard.after + 1)
                for shard in changed.shards
            ),
        )

    patch.setattr(shards, "rolled", rolled_too_far)


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        (applies_old_messages_again, "/of_"),
        (omits_records, "does not follow"),
        (records_twice, "does not follow"),
        (records_unchanged_items, "a record of no change"),
        (follows_logs_during_the_backfill, "/added_"),
        (loses_the_first_record_of_a_shard, "does not follow"),
    ],
)
async def test_a_planted_fault_of_indexes_or_streams_is_detected(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None], shown: str
) -> None:
    fills_slowly = fault is follows_logs_during_the_backfill
    draw = Random(3)
    faults = MessageFaults(GlobalIndexActors.ask, draw, 0.3 if fills_slowly else 0.01)

    def ask(actors, place, message):
        return faults.ask(actors, place, message)

    monkeypatch.setattr(GlobalIndexActors, "ask", ask)
    fault(monkeypatch)
    found: list[str] = []

    # The random writes may miss the fault, so up to ``MOST_RUNS`` runs are made.
    for _ in range(MOST_RUNS):
        with structlog.testing.capture_logs():
            found, _ = await written_and_compared(
                draw, ANSWERS, TIMEOUT_SECONDS, keep_indexes=fills_slowly
            )
        if any(shown in each for each in found):
            break

    assert any(shown in each for each in found), found


def test_the_projection_of_an_index() -> None:
    some = GlobalIndex(
        "i",
        (("rank", "N"), ("mixed", "S")),
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["n"]},
        item_count=0,
        status="ACTIVE",
    )
    key = {"pk": {"S": "p"}, "sk": {"S": "s"}}
    entry = {**key, "rank": {"N": "1"}, "mixed": {"S": "m"}, "n": {"N": "2"}}

    assert some.project({**entry, "title": {"S": "t"}}) == entry
    assert some._replace(projection={"ProjectionType": "ALL"}).project(entry) == entry
    for violation in ({"S": ""}, {"N": "1"}):
        assert some.project({**entry, "mixed": violation}) is None
    assert some.project({**key, "rank": {"N": "1"}}) is None

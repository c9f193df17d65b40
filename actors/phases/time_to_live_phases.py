"""The phases of the time to live of tables.

ENABLING: its commit stores the positions from which changes are recorded, as the expirers' first
checkpoints. A scan lists the expiry times of the items. Then the expirers start at those positions.
They apply changes again that the scan has seen, and correct the list. ENABLED: the expirers have
caught up, and expired items are deleted. DISABLING: nothing is deleted any more, and the list is
removed.

After a crash each phase continues from its stored state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import structs

from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.definition_commit import CommittedDefinition
from dynactor.actors.derived.expiry.sweeper import MOST_BEHIND_SECONDS
from dynactor.actors.derived.expiry.time_to_live import (
    TimeToLiveActors,
    subscriber_id,
)
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.parts.phase_machine import Phase, PhaseMachine
from dynactor.actors.table.messages import UpdateTimeToLive
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import TimeToLive
from dynactor.model.errors import ResourceInUseException
from dynactor.model.tables.time_to_live import TimeToLiveChange, changed
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.storage import key_layout
from dynactor.storage.catalog import TableRecord


def _stored_phase(table: Table) -> str:
    settings = table.definition.time_to_live
    return "DISABLED" if settings is None else settings.status


class TimeToLivePhases(Part):
    """Starts and ends the phases of time to live."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._sweeping = parts.settings.time_to_live
        # One limit for all sweepers of the server, so that each partition gets its turn.
        self._rate = SteadyRate(
            self._sweeping.deletes_per_second, most_behind_seconds=MOST_BEHIND_SECONDS
        )
        self.handlers = {UpdateTimeToLive: self._update}
        self.machines = [
            PhaseMachine(
                "time to live",
                self._phases(),
                find=parts.find_table,
                stored_phase=_stored_phase,
                tell=parts.tell_later,
            )
        ]

    def _phases(self) -> Mapping[str, Phase[Table]]:
        seconds = self._sweeping.transition_seconds
        return {
            "DISABLED": Phase(),
            "ENABLING": Phase(("CATCHING_UP",), self._list, leave=_end_scan),
            "CATCHING_UP": Phase(
                ("LISTED",), self._catch_up, leave=_end_catching_up, stored_as="ENABLING"
            ),
            "LISTED": Phase(
                ("ENABLED",), seconds=seconds, leave=self._enable, stored_as="ENABLING"
            ),
            "ENABLED": Phase(start=self._sweep),
            "DISABLING": Phase(("DISABLED",), seconds=seconds, leave=self._disable),
        }

    async def _update(self, message: UpdateTimeToLive) -> None:
        table = self._tables.named(message.name)
        if table.definition.status == "DELETING":
            # The service accepts the change, which has no effect any more.
            return
        if table.definition.status == "CREATING":
            raise ResourceInUseException(
                "Time to live cannot be configured when table is in CREATING or DELETING state"
            )
        await self._change(table, message.change)
        await self._parts.resume(table)

    async def _change(self, table: Table, change: TimeToLiveChange) -> None:
        """Switch time to live on or off, durably.

        Raises ``ValidationException`` as ``dynactor.model.tables.time_to_live.changed``.
        ``StoreError`` changes nothing.
        """
        now = self._clock.now_epoch_seconds()
        current = table.definition.time_to_live
        settings = changed(
            current,
            change,
            now,
            self._sweeping.change_interval_seconds,
            self._sweeping.transition_seconds,
        )
        if change.enabled:
            if current is not None and current.status == "DISABLING":
                # The old list is deleted before a new one starts.
                await self._end(table, current)
            await self._begin(table, settings)
        else:
            # No item is deleted after this commit: a partition that decides by the old definition
            # gets a conflict. Changes that are recorded already have no effect.
            definition = structs.replace(table.definition, time_to_live=settings)
            await definition_commit.redefine(self._owner, table, definition)
            await table.followers.detach(subscriber_id(table))

    async def _list(self, table: Table, over: Callable[[], None]) -> None:
        self._attach(table).backfill(over)

    async def _catch_up(self, table: Table, over: Callable[[], None]) -> None:
        """Apply the changes since the start of the scan to the list."""
        actors = _actors(table)
        actors.follow(await table.followers.feeds_for(subscriber_id(table)))
        self._supervisor.run_in_background(_wait_caught_up, actors, over)

    async def _enable(self, table: Table) -> str:
        settings = table.definition.time_to_live
        assert settings is not None
        await self._put(table, structs.replace(settings, status="ENABLED"))
        return "ENABLED"

    async def _sweep(self, table: Table, _over: Callable[[], None]) -> None:
        """Delete expired items; the followers may be running already."""
        if table.followers.following(subscriber_id(table)) is None:
            feeds = await table.followers.feeds_for(subscriber_id(table))
            self._attach(table).follow(feeds)
        _actors(table).sweep()

    async def _disable(self, table: Table) -> str:
        settings = table.definition.time_to_live
        assert settings is not None
        await self._end(table, settings)
        return "DISABLED"

    def _attach(self, table: Table) -> TimeToLiveActors:
        actors = TimeToLiveActors(table, self._environment, self._sweeping, self._rate)
        table.followers.attach(subscriber_id(table), actors)
        return actors

    async def _begin(self, table: Table, settings: TimeToLive) -> None:
        subscriber = subscriber_id(table)

        def storing(record: TableRecord, counters: Mapping[int, int]) -> CommittedDefinition:
            ends = [(key, b"") for key in key_layout.expiry_ends(record.definition.table_id)]
            return CommittedDefinition(
                # Time to live may have been enabled before, when expirers followed logs that have
                # ended since.
                definition_commit.without_followers(record, [subscriber]),
                puts=[*first_checkpoints(subscriber, counters), *ends],
            )

        definition = structs.replace(table.definition, time_to_live=settings)
        await definition_commit.redefine(self._owner, table, definition, storing)

    async def _end(self, table: Table, settings: TimeToLive) -> None:
        """Delete the list of expiry times, and the expirers' checkpoints."""
        table_id = table.definition.table_id
        await self._put(
            table,
            structs.replace(settings, status="DISABLED"),
            range_deletes=[
                key_layout.expiry_range(table_id),
                key_layout.expiry_checkpoint_range(table_id),
            ],
        )

    async def _put(
        self,
        table: Table,
        settings: TimeToLive,
        range_deletes: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        definition = structs.replace(table.definition, time_to_live=settings)
        await definition_commit.store(self._owner, table, definition, range_deletes=range_deletes)


def _actors(table: Table) -> TimeToLiveActors:
    actors = table.followers.following(subscriber_id(table))
    assert isinstance(actors, TimeToLiveActors)
    return actors


async def _end_scan(_table: Table) -> str:
    return "CATCHING_UP"


async def _end_catching_up(_table: Table) -> str:
    return "LISTED"


async def _wait_caught_up(actors: TimeToLiveActors, over: Callable[[], None]) -> None:
    if await actors.wait_caught_up():
        over()

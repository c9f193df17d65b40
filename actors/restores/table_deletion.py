"""Deletes tables, and moves tables through their own phases: CREATING, ACTIVE, DELETING."""

from __future__ import annotations

from msgspec import structs

from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.catalog import definition_commit
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.parts.phase_machine import PhaseMachine, table_subject
from dynactor.actors.phases import table_phases
from dynactor.actors.phases.splits import Splitter
from dynactor.actors.phases.table_changes import TableChanges
from dynactor.actors.restores.restore_phases import RestorePhases
from dynactor.actors.table.messages import DeleteTable
from dynactor.actors.table.state import TableState, table_state
from dynactor.actors.table.table import Table
from dynactor.model.tables.table_rules import check_deletable
from dynactor.storage import table_backups
from dynactor.storage.store import Row


class TableDeletion(Part):
    """Deletes tables. Tables that are being restored or imported are deleted by their own part."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._table_changes = parts[TableChanges]
        self._table_backups = parts[TableBackups]
        self._restores = parts[RestorePhases]
        self._machine = PhaseMachine(
            "table",
            table_phases.table_phases(
                self._owner,
                parts.settings.table_transition_seconds,
                self._drop_as_it_is,
                parts[Splitter].grow,
            ),
            find=parts.find_table,
            stored_phase=table_phases.stored_phase,
            tell=parts.tell_later,
        )
        self.machines = [self._machine]
        self.handlers = {DeleteTable: self._delete}

    async def _delete(self, message: DeleteTable) -> TableState:
        table = self._tables.named(message.name)
        canceled = await self._restores.cancel(table)
        if canceled is not None:
            return canceled
        check_deletable(table.definition)
        self._parts.check_deletable(table)
        state = await table_state(table)
        deleting = structs.replace(table.definition, status="DELETING")
        if self._settings.table_transition_seconds:
            await definition_commit.store(self._owner, table, deleting)
            await self._machine.resume(table_subject(table))
        else:
            await self._drop(table, state.size_bytes)
        return structs.replace(state, definition=deleting)

    async def _drop_as_it_is(self, table: Table) -> None:
        await self._drop(table, (await table_state(table)).size_bytes)

    async def _drop(self, table: Table, size_bytes: int) -> None:
        """Delete a table. The items of one with point-in-time recovery stay, in a backup."""
        if table.definition.point_in_time_recovery is None:
            await self._table_changes.drop(table, size_bytes)
            return
        kept = await self._table_backups.last_state(table)
        also = [Row(*table_backups.row(kept))]
        await self._table_changes.drop(table, size_bytes, also, keeps_items=True)
        self._table_backups.remember(kept)

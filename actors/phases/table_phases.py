"""The timed phases of tables: CREATING, DELETING, and UPDATING for changes of settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.parts.phase_machine import GONE, Phase, update_phases
from dynactor.actors.table.table import Table
from dynactor.model.tables.table_rules import activated, after_update

# The table waits for its items or for a new index, not for a time.
_HELD = "HELD"


def stored_phase(table: Table) -> str:
    """The phase of a table, by its definition."""
    definition = table.definition
    is_held = definition.restore_phase != "DONE" or definition.is_allocating
    if is_held and definition.status != "ACTIVE":
        return _HELD
    return "ACTIVE" if definition.status == "UPDATING" else definition.status


def stored_update(table: Table) -> str:
    """The phase of a table's settings, by its definition."""
    definition = table.definition
    # An earlier version stored the status alone.
    is_updating = definition.status == "UPDATING" and not definition.is_allocating
    return "UPDATING" if is_updating or definition.changing else "SETTLED"


def table_phases(
    owner: CatalogOwner,
    seconds: float,
    drop: Callable[[Table], Awaitable[None]],
    grow: Callable[[Table], None],
) -> Mapping[str, Phase[Table]]:
    """``drop`` deletes a table; ``grow`` splits its partitions as its throughput requires."""

    async def activate(table: Table) -> str:
        await definition_commit.store(owner, table, activated(table.definition))
        grow(table)
        return "ACTIVE"

    async def delete(table: Table) -> None:
        await drop(table)

    return {
        _HELD: Phase(),
        "CREATING": Phase(("ACTIVE",), seconds=seconds, leave=activate),
        "DELETING": Phase((GONE,), seconds=seconds, leave=delete),
        "ACTIVE": Phase(),
    }


def updates(
    owner: CatalogOwner, seconds: float, grow: Callable[[Table], None]
) -> Mapping[str, Phase[Table]]:
    """The phases of a table's settings. Changes of different kinds end together."""

    async def settle(table: Table) -> str:
        await definition_commit.store(owner, table, after_update(table.definition))
        grow(table)
        return "SETTLED"

    return update_phases(seconds, settle)

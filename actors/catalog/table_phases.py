"""The timed phases of tables: CREATING, UPDATING, DELETING."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.phases import GONE, Phase
from dynactor.actors.table.table import Table
from dynactor.model.tables.table_rules import after_update

# The table waits for its items or for a new index, not for a time.
_HELD = "HELD"


def stored_phase(table: Table) -> str:
    """The phase of a table, by its definition."""
    definition = table.definition
    is_held = definition.restore_phase != "DONE" or any(
        index.backfilling is False for index in definition.global_indexes
    )
    return _HELD if is_held and definition.status != "ACTIVE" else definition.status


def table_phases(
    owner: CatalogOwner,
    seconds: float,
    drop: Callable[[Table], Awaitable[None]],
    grow: Callable[[Table], None],
) -> Mapping[str, Phase[Table]]:
    """``drop`` deletes a table; ``grow`` splits its partitions as its throughput requires."""

    async def activate(table: Table) -> str:
        await definition_commit.store(owner, table, after_update(table.definition))
        grow(table)
        return "ACTIVE"

    async def delete(table: Table) -> None:
        await drop(table)

    return {
        _HELD: Phase(),
        "CREATING": Phase(("ACTIVE",), seconds=seconds, leave=activate),
        "UPDATING": Phase(("ACTIVE",), seconds=seconds, leave=activate),
        "DELETING": Phase((GONE,), seconds=seconds, leave=delete),
        "ACTIVE": Phase(),
    }

"""The changes of a table in progress, and the changes that they exclude.

A change in progress excludes only some others: ``_EXCLUSIONS`` has all pairs with their errors.
Texts are the service's, seen in October 2026. Comments mark texts that are inferred in part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from dynactor.model.definitions.table import ChangeKind, TableDefinition
from dynactor.model.errors import ResourceInUseException

_IN_USE: Final = "Attempt to change a resource which is still in use: "
_DELETION_OF_CHANGING_INDEXES: Final = (
    "Cannot delete table while indexes are being created, updated, or deleted."
)
_UNITS_ARE_UPDATED: Final = "Table IOPS are currently being updated. Table: {table}"
_TABLE_IS_UPDATED: Final = "Table: {table} is in the process of being updated."
_INDEX_BESIDE_UNITS: Final = (
    "Can't create or delete indexes while table IOPS are being updated. Table: {table}"
)
# The ends of these two are inferred.
_INDEX_BESIDE_STREAM: Final = (
    "Can't create or delete an index when stream status is being updated. Table: {table}"
)
_INDEX_BESIDE_CLASS: Final = (
    "Can't create or delete an index when a table class update is in progress. Table: {table}"
)
# Inferred: the error of any change of a table that is being created or deleted.
_IS_BEING_UPDATED: Final = "Table is being updated: {table}"


class _Exclusion(NamedTuple):
    """A change that is refused while another one is in progress.

    The text may name the ``{table}``, and the ``{indexes}`` whose change is in progress.
    """

    wanted: ChangeKind
    in_progress: ChangeKind
    text: str


_EXCLUSIONS: Final = (
    _Exclusion("TABLE_DELETION", "INDEX_CREATION", _DELETION_OF_CHANGING_INDEXES),
    _Exclusion("TABLE_DELETION", "INDEX_BACKFILL", _DELETION_OF_CHANGING_INDEXES),
    _Exclusion("TABLE_DELETION", "INDEX_UPDATE", _DELETION_OF_CHANGING_INDEXES),
    _Exclusion("TABLE_DELETION", "INDEX_DELETION", _DELETION_OF_CHANGING_INDEXES),
    _Exclusion(
        "TABLE_DELETION", "STREAM", "Cannot delete table while stream is being enabled/disabled."
    ),
    _Exclusion("TABLE_DELETION", "THROUGHPUT", _TABLE_IS_UPDATED),
    _Exclusion("TABLE_DELETION", "SSE", _TABLE_IS_UPDATED),
    _Exclusion("TABLE_DELETION", "TABLE_CLASS", _TABLE_IS_UPDATED),
    _Exclusion("TABLE_DELETION", "ON_DEMAND_THROUGHPUT", _TABLE_IS_UPDATED),
    _Exclusion("THROUGHPUT", "THROUGHPUT", _UNITS_ARE_UPDATED),
    _Exclusion(
        "THROUGHPUT",
        "INDEX_CREATION",
        "Can't change table IOPS when an index is being created. Table: {table} "
        "Indexes: [{indexes}]",
    ),
    # Inferred from the other two.
    _Exclusion(
        "THROUGHPUT",
        "INDEX_UPDATE",
        "Can't change table IOPS when an index is being updated. Table: {table} "
        "Indexes: [{indexes}]",
    ),
    _Exclusion(
        "THROUGHPUT",
        "INDEX_DELETION",
        "Can't change table IOPS when an index is being deleted. Table: {table} "
        "Indexes: [{indexes}]",
    ),
    # Inferred from the next one.
    _Exclusion(
        "ON_DEMAND_THROUGHPUT",
        "INDEX_CREATION",
        "OnDemandThroughput cannot be updated while index creation is in progress for indexes: "
        "[{indexes}]",
    ),
    _Exclusion(
        "ON_DEMAND_THROUGHPUT",
        "INDEX_DELETION",
        "OnDemandThroughput cannot be updated while index deletion is in progress for indexes: "
        "[{indexes}]",
    ),
    _Exclusion("INDEX_CREATION", "THROUGHPUT", _INDEX_BESIDE_UNITS),
    _Exclusion("INDEX_DELETION", "THROUGHPUT", _INDEX_BESIDE_UNITS),
    _Exclusion("INDEX_CREATION", "STREAM", _INDEX_BESIDE_STREAM),
    _Exclusion("INDEX_DELETION", "STREAM", _INDEX_BESIDE_STREAM),
    _Exclusion("INDEX_CREATION", "TABLE_CLASS", _INDEX_BESIDE_CLASS),
    _Exclusion("INDEX_DELETION", "TABLE_CLASS", _INDEX_BESIDE_CLASS),
    _Exclusion(
        "TABLE_CLASS",
        "TABLE_CLASS",
        "Can't update table class when a table class update is in progress. Table: {table}",
    ),
    # Inferred: the units of an index are part of the table's.
    _Exclusion("INDEX_UPDATE", "THROUGHPUT", _UNITS_ARE_UPDATED),
    _Exclusion("STREAM", "STREAM", _IS_BEING_UPDATED),
    _Exclusion("SSE", "SSE", _IS_BEING_UPDATED),
    _Exclusion("ON_DEMAND_THROUGHPUT", "ON_DEMAND_THROUGHPUT", _IS_BEING_UPDATED),
    _Exclusion("WARM_THROUGHPUT", "WARM_THROUGHPUT", _IS_BEING_UPDATED),
)


def check(definition: TableDefinition, wanted: Collection[ChangeKind]) -> None:
    """Refuse changes that a change in progress excludes; raises ``ResourceInUseException``."""
    present = _in_progress(definition)
    for exclusion in _EXCLUSIONS:
        if exclusion.wanted in wanted and exclusion.in_progress in present:
            indexes = ", ".join(present[exclusion.in_progress])
            text = exclusion.text.format(table=definition.name, indexes=indexes)
            raise ResourceInUseException(_IN_USE + text)


def _in_progress(definition: TableDefinition) -> Mapping[ChangeKind, list[str]]:
    """The kinds of changes in progress, with the names of the indexes that are changing."""
    found: dict[ChangeKind, list[str]] = {kind: [] for kind in definition.changing}
    for index in definition.global_indexes:
        kinds: list[ChangeKind] = []
        if index.status == "UPDATING":
            kinds.append("INDEX_UPDATE")
        if index.status == "DELETING":
            kinds.append("INDEX_DELETION")
        elif index.backfilling is not None:
            kinds.append("INDEX_BACKFILL" if index.backfilling else "INDEX_CREATION")
        for kind in kinds:
            found.setdefault(kind, []).append(index.definition.name)
    return found

"""Which changes of global secondary indexes and their table each phase allows.

Messages are dynalite's (measured on AWS) if it has them, else DynamoDB Local's, which come from the
service's own classes. Messages that neither has are marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dynactor.model.definitions.table import GlobalIndex, TableDefinition
from dynactor.model.errors import (
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from dynactor.model.limits import GLOBAL_INDEXES
from dynactor.model.tables.global_index_rules import GlobalIndexUpdate, NewGlobalIndex

_IN_USE: Final = "Attempt to change a resource which is still in use: Index is being"


def check_phases(
    definition: TableDefinition,
    creates: Sequence[NewGlobalIndex],
    updates: Sequence[GlobalIndexUpdate],
    deletes: Sequence[str],
) -> None:
    """Check that these changes may start while others are in progress (S178, S199-S206).

    Raises ``LimitExceededException`` for a second index to create or delete,
    ``ResourceInUseException`` if an index can't change now. Raises ``ResourceNotFoundException``
    for a missing index, or ``ValidationException`` for an index that exists already, or is local.
    """
    if len(creates) + len(deletes) > 1:
        raise _only_one()
    for index in creates:
        present = definition.global_index(index.name)
        if present is not None and present.status == "DELETING":
            raise ResourceInUseException(
                f"{_IN_USE} deleted. Table: {definition.name} Index: {index.name}"
            )
        if index.name in {present.name for present in definition.indexes}:
            raise ValidationException("Attempting to create an index which already exists")
        _check_alone(definition)
        if len(definition.global_indexes) >= GLOBAL_INDEXES:
            raise LimitExceededException(
                "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table "
                f"limit of {GLOBAL_INDEXES}"
            )
    for name in deletes:
        if definition.local_index(name) is not None:
            raise ValidationException("Cannot delete an index that is not a GlobalSecondaryIndex")
        _check_deletable(definition.name, _present(definition, name))
        _check_alone(definition, but=name)
    for update in updates:
        _check_updatable(_present(definition, update.name))


def _present(definition: TableDefinition, name: str) -> GlobalIndex:
    index = definition.global_index(name)
    if index is None:
        raise ResourceNotFoundException(
            f"Requested resource not found: Index {name} for table {definition.name}"
        )
    return index


def _check_deletable(table_name: str, index: GlobalIndex) -> None:
    if index.status == "DELETING":
        raise ResourceInUseException(f"{_IN_USE} deleted.")
    if index.backfilling is False:
        raise ResourceInUseException(
            "Attempt to change a resource which is still in use: Index creation is in resource "
            "allocation phase. Retry deletion during backfilling phase or when the index is "
            f"active. Table: {table_name} Index: {index.definition.name}"
        )
    if index.status == "UPDATING" and index.backfilling is None:
        raise ResourceInUseException(f"{_IN_USE} updated.")


def _check_updatable(index: GlobalIndex) -> None:
    if index.status == "DELETING":
        raise ResourceInUseException(f"{_IN_USE} deleted.")
    if index.backfilling is False:
        raise ResourceInUseException(f"{_IN_USE} created but not backfilling.")
    if index.status == "UPDATING":
        raise ResourceInUseException(f"{_IN_USE} updated.")


def _check_alone(definition: TableDefinition, but: str | None = None) -> None:
    """Refuse to create or delete an index while another one is created or deleted (S206)."""
    for index in definition.global_indexes:
        is_changing = index.status == "DELETING" or index.backfilling is not None
        if is_changing and index.definition.name != but:
            raise _only_one()


def _only_one() -> LimitExceededException:
    return LimitExceededException(
        "Subscriber limit exceeded: Only 1 online index can be created or deleted "
        "simultaneously per table"
    )

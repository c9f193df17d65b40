"""What global secondary indexes may be like, and what may be done to them in each phase.

Messages: dynalite's (measured on AWS) where it has them, else DynamoDB Local's, which are those
of the service's own classes; what neither has is marked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from model import schema_rules, throughput_rules
from model.errors import (
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from model.index import IndexDefinition
from model.key import KeyAttribute, KeySchema
from model.limits import (
    GLOBAL_INDEX_KEY_ATTRIBUTES,
    GLOBAL_INDEXES,
    THROUGHPUT_DECREASES_PER_DAY,
)
from model.schema_rules import INVALID, KeyElement, NewIndex
from model.table import BillingMode, GlobalIndex, TableDefinition, Throughput

_IN_USE: Final = "Attempt to change a resource which is still in use: Index is being"


class NewGlobalIndex(NewIndex, frozen=True):
    """A global secondary index, as it was asked for."""

    throughput: Throughput | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None


class GlobalIndexUpdate(Struct, frozen=True):
    """New throughput for a global secondary index; None stands for what was left out."""

    name: str
    throughput: Throughput | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None


# -- with a new table -----------------------------------------------------------------------


def of_new_table(
    indexes: Sequence[NewGlobalIndex],
    definitions: Sequence[KeyAttribute],
    billing_mode: BillingMode,
    local_indexes: Sequence[IndexDefinition],
) -> tuple[GlobalIndex, ...]:
    """The global indexes that a table is made with; their ids follow those of its local ones.

    Raises:
        ValidationException: one of them can't be, or they can't all be together.
    """
    if not indexes:
        raise ValidationException(f"{INVALID}List of GlobalSecondaryIndexes is empty")
    taken = {index.name for index in local_indexes}
    made: list[GlobalIndex] = []
    for index_id, index in enumerate(indexes, start=len(local_indexes) + 1):
        made.append(
            _made(index, index_id, definitions, billing_mode, taken=taken, with_new_table=True)
        )
        taken.add(index.name)
    if len(made) > GLOBAL_INDEXES:
        raise ValidationException(
            f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES}"
        )
    return tuple(made)


def _made(
    index: NewGlobalIndex,
    index_id: int,
    definitions: Sequence[KeyAttribute],
    billing_mode: BillingMode,
    *,
    taken: Collection[str] = (),
    with_new_table: bool = False,
) -> GlobalIndex:
    key = _key(index.key_schema, definitions)
    projection = schema_rules.projection_of(index)
    throughput_rules.check_of_index(
        billing_mode, index.name, index.throughput, with_new_table=with_new_table
    )
    schema_rules.check_new_name(index.name, taken)
    made = GlobalIndex(
        IndexDefinition(index_id, index.name, key, projection),
        throughput=index.throughput or throughput_rules.ON_DEMAND_THROUGHPUT,
    )
    return _with_other_throughput(
        made,
        billing_mode,
        made.throughput,
        index.on_demand_throughput,
        index.warm_throughput,
    )


def _key(elements: Sequence[KeyElement], definitions: Sequence[KeyAttribute]) -> KeySchema:
    """The key of a global index: up to four attributes of each kind, HASH before RANGE."""
    attributes = schema_rules.key_attributes(elements, definitions)
    roles = [element.role for element in elements]
    partitions = roles.count("HASH")
    if "RANGE" in roles[:partitions]:
        raise ValidationException(
            f"{INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema"
        )
    key = KeySchema(attributes[:partitions], attributes[partitions:])
    for role, of_role in (("HASH", key.partition), ("RANGE", key.sort)):
        if len(of_role) > GLOBAL_INDEX_KEY_ATTRIBUTES:
            raise ValidationException(
                f"{INVALID}The KeySchema exceeds the maximum allowed number of {role} key "
                "attributes"
            )
    return key


def _with_other_throughput(
    index: GlobalIndex,
    billing_mode: BillingMode,
    throughput: Throughput,
    on_demand: dict[str, Any] | None,
    warm: dict[str, Any] | None,
) -> GlobalIndex:
    name = index.definition.name
    if on_demand is not None:
        limits = throughput_rules.on_demand_limits(
            billing_mode, index.on_demand_throughput, on_demand, f"index : {name}"
        )
        index = replace(index, on_demand_throughput=limits)
    if warm is not None:
        held = throughput_rules.warm(
            billing_mode, throughput, index.warm_throughput, warm, f"index {name}"
        )
        index = replace(index, warm_throughput=held)
    return index


# -- changes, before their table is looked at -------------------------------------------------


def check_named_once(names: Sequence[str]) -> None:
    """Refuse two changes of one index in a request.

    Raises:
        ValidationException: an index is named twice.
    """
    for at, name in enumerate(names):
        if name in names[:at]:
            raise ValidationException(
                f"{INVALID}Only one global secondary index update per index is allowed "
                f"simultaneously. Index: {name}"
            )


# -- changes, by phase ------------------------------------------------------------------------


def check_table_may_change(definition: TableDefinition) -> None:
    """Refuse another throughput or billing mode of the table in phase 1 of an index (S183).

    Raises:
        ResourceInUseException: an index gets its resources, gives them back, or gets new
            throughput.
    """
    for index in definition.global_indexes:
        if index.status in ("DELETING", "UPDATING"):
            state: str = index.status
        elif index.backfilling is False:
            state = "CREATING, isBackfilling=false"
        else:
            continue
        raise ResourceInUseException(
            f"Can't update table while indexes are in {state} status. "
            f"Table: {definition.name} Index: {index.definition.name}"
        )


def check_table_deletable(definition: TableDefinition) -> None:
    """Refuse to delete a table while one of its indexes is not ACTIVE (S183, S186).

    Raises:
        ResourceInUseException: an index is being created, updated or deleted.
    """
    if any(index.status != "ACTIVE" for index in definition.global_indexes):
        raise ResourceInUseException(
            "Attempt to change a resource which is still in use: Cannot delete table while "
            "indexes are being created, updated, or deleted."
        )


def check_phases(
    definition: TableDefinition,
    creates: Sequence[NewGlobalIndex],
    updates: Sequence[GlobalIndexUpdate],
    deletes: Sequence[str],
) -> None:
    """Check that these changes may be begun while others go on (S178, S199-S206).

    Raises:
        LimitExceededException: more than one index would be made or deleted at a time.
        ResourceInUseException: an index is in a state in which it can't be changed.
        ResourceNotFoundException: an index is not there.
        ValidationException: an index is there that is to be made, or is a local one.
    """
    if len(creates) + len(deletes) > 1:
        raise _only_one()
    for index in creates:
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
    """Refuse to make or delete an index while another one is made or deleted (S206)."""
    for index in definition.global_indexes:
        in_passing = index.status == "DELETING" or index.backfilling is not None
        if in_passing and index.definition.name != but:
            raise _only_one()


def _only_one() -> LimitExceededException:
    return LimitExceededException(
        "Subscriber limit exceeded: Only 1 online index can be created or deleted "
        "simultaneously per table"
    )


# -- changes, carried out ---------------------------------------------------------------------


def updated(
    definition: TableDefinition,
    updates: Sequence[GlobalIndexUpdate],
    old_billing_mode: BillingMode,
    now_epoch_seconds: float,
    decreases_per_day: int = THROUGHPUT_DECREASES_PER_DAY,
) -> TableDefinition:
    """A table, already in its new billing mode, with its indexes' new throughput (S166, S208).

    An index whose throughput changes is UPDATING, also while it is filled (S204). New units are
    pending until ``after_update``, unless the billing mode changes with them.

    Raises:
        ValidationException: throughput is missing, does not go with the mode, is too much, or
            is what it was.
        LimitExceededException: units were taken away from an index too often today.
    """
    by_name = {update.name: update for update in updates}
    billing_mode = definition.billing_mode
    switched = billing_mode != old_billing_mode
    if switched and billing_mode == "PROVISIONED":
        throughput_rules.check_none_missing(
            [
                index.definition.name
                for index in definition.global_indexes
                if by_name.get(index.definition.name, _NOTHING).throughput is None
            ]
        )
    indexes = []
    for index in definition.global_indexes:
        changed = _switched(index, billing_mode) if switched else index
        update = by_name.get(index.definition.name)
        if update is not None:
            changed = _updated(changed, billing_mode, update, now_epoch_seconds, decreases_per_day)
        if switched:
            changed = after_update(changed)
        indexes.append(index if changed == index else replace(changed, status="UPDATING"))
    return replace(definition, global_indexes=tuple(indexes))


_NOTHING: Final = GlobalIndexUpdate("")


def _switched(index: GlobalIndex, billing_mode: BillingMode) -> GlobalIndex:
    """An index follows its table's mode; that is no decrease of its throughput."""
    if billing_mode == "PROVISIONED":
        return replace(index, on_demand_throughput=None)
    return replace(index, throughput=replace(index.throughput, read_units=0, write_units=0))


def _updated(
    index: GlobalIndex,
    billing_mode: BillingMode,
    update: GlobalIndexUpdate,
    now_epoch_seconds: float,
    decreases_per_day: int,
) -> GlobalIndex:
    name = index.definition.name
    if update == GlobalIndexUpdate(name):
        raise ValidationException(
            f"{INVALID}One of ProvisionedThroughput, OnDemandThroughput, WarmThroughput must be "
            f"specified for index: {name}"
        )
    throughput = index.throughput
    if update.throughput is not None:
        throughput_rules.check_of_index(billing_mode, name, update.throughput)
        throughput_rules.check_changes(index.throughput, update.throughput, f"index {name}")
        throughput = throughput_rules.changed(
            index.throughput, update.throughput, now_epoch_seconds, decreases_per_day
        )
        index = replace(index, pending_throughput=throughput)
    return _with_other_throughput(
        index, billing_mode, throughput, update.on_demand_throughput, update.warm_throughput
    )


def after_update(index: GlobalIndex) -> GlobalIndex:
    """An index when its update is over: with the throughput asked for, ACTIVE or still filled."""
    return replace(
        index,
        status="CREATING" if index.backfilling else "ACTIVE",
        throughput=index.pending_throughput or index.throughput,
        pending_throughput=None,
    )


def with_created(
    definition: TableDefinition, index: NewGlobalIndex, definitions: Sequence[KeyAttribute]
) -> TableDefinition:
    """A table with an index in phase 1 (S177, S182).

    ``definitions`` are the request's. They must define the index's key. An attribute that the
    table defines already keeps its type, whatever type the request gives it (observed on AWS).
    Definitions that no key uses are dropped (clients send those of indexes they will add next).

    Raises:
        ValidationException: the index can't be.
    """
    known = {attribute.name: attribute for attribute in definition.attribute_definitions}
    typed = [known.get(attribute.name, attribute) for attribute in definitions]
    made = _made(index, definition.next_index_id, typed, definition.billing_mode)
    created = replace(made, status="CREATING", backfilling=False)
    added = [attribute for attribute in definitions if attribute.name not in known]
    definition = replace(
        definition,
        attribute_definitions=(*definition.attribute_definitions, *added),
        global_indexes=(*definition.global_indexes, created),
        next_index_id=definition.next_index_id + 1,
    )
    schema_rules.check_projected_count(definition.indexes)
    return _with_used_definitions(definition)


def with_deleted(definition: TableDefinition, name: str) -> TableDefinition:
    """A table with an index on its way out: attributes that it alone used are defined no more."""
    return _with_used_definitions(
        replace(
            definition,
            global_indexes=tuple(
                replace(index, status="DELETING", backfilling=None)
                if index.definition.name == name
                else index
                for index in definition.global_indexes
            ),
        )
    )


def _with_used_definitions(definition: TableDefinition) -> TableDefinition:
    kept = [index.definition for index in definition.global_indexes if index.status != "DELETING"]
    used = schema_rules.used_names(definition.key_schema, [*definition.local_indexes, *kept])
    return replace(
        definition,
        attribute_definitions=tuple(
            attribute for attribute in definition.attribute_definitions if attribute.name in used
        ),
    )

"""Applies changes of global secondary indexes to the definition of their table.

Messages are dynalite's (measured on AWS) if it has them, else DynamoDB Local's, which come from the
service's own classes. Messages that neither has are marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from dynactor.model.definitions.table import BillingMode, GlobalIndex, TableDefinition
from dynactor.model.errors import invalid_value
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import THROUGHPUT_DECREASES_PER_DAY
from dynactor.model.tables import schema_rules, throughput_rules
from dynactor.model.tables.global_index_rules import (
    GlobalIndexUpdate,
    NewGlobalIndex,
    new_global_index,
    with_other_throughput,
)


def updated(
    definition: TableDefinition,
    updates: Sequence[GlobalIndexUpdate],
    old_billing_mode: BillingMode,
    now_epoch_seconds: float,
    decreases_per_day: int = THROUGHPUT_DECREASES_PER_DAY,
) -> TableDefinition:
    """Give a table's indexes their new throughput; the table has its new billing mode (S166, S208).

    An index whose throughput changes is UPDATING, even during its backfill (S204). New units are
    pending until ``after_update``, unless the billing mode changes with them. Raises
    ``ValidationException`` for invalid or unchanged throughput, or ``LimitExceededException`` after
    too many decreases today.
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
        changed = index
        if switched:
            changed = _switched(_with_kept_warmth(index, old_billing_mode), billing_mode)
        update = by_name.get(index.definition.name)
        if update is not None:
            changed = _updated(changed, billing_mode, update, now_epoch_seconds, decreases_per_day)
        if switched:
            changed = after_update(changed)
        indexes.append(index if changed == index else replace(changed, status="UPDATING"))
    return replace(definition, global_indexes=tuple(indexes))


_NOTHING: Final = GlobalIndexUpdate("")


def _switched(index: GlobalIndex, billing_mode: BillingMode) -> GlobalIndex:
    """An index with its table's new billing mode; the switch does not count as a decrease."""
    if billing_mode == "PROVISIONED":
        return replace(index, on_demand_throughput=None)
    return replace(index, throughput=replace(index.throughput, read_units=0, write_units=0))


def _with_kept_warmth(index: GlobalIndex, billing_mode: BillingMode) -> GlobalIndex:
    """An index whose units or billing mode change; its warm throughput is not lowered."""
    kept = throughput_rules.kept_warm(billing_mode, index.throughput, index.warm_throughput)
    return replace(index, warm_throughput=kept)


def _updated(
    index: GlobalIndex,
    billing_mode: BillingMode,
    update: GlobalIndexUpdate,
    now_epoch_seconds: float,
    decreases_per_day: int,
) -> GlobalIndex:
    name = index.definition.name
    if update == GlobalIndexUpdate(name):
        raise invalid_value(
            "One of ProvisionedThroughput, OnDemandThroughput, WarmThroughput must be specified "
            f"for index: {name}"
        )
    throughput = index.throughput
    if update.throughput is not None:
        throughput_rules.check_of_index(billing_mode, name, update.throughput)
        throughput_rules.check_changes(index.throughput, update.throughput, f"index {name}")
        throughput = throughput_rules.changed(
            index.throughput, update.throughput, now_epoch_seconds, decreases_per_day
        )
        shown = throughput_rules.with_pending_times(index.throughput, throughput, now_epoch_seconds)
        index = replace(
            _with_kept_warmth(index, billing_mode),
            throughput=shown,
            pending_throughput=throughput,
        )
    changed = with_other_throughput(
        index, billing_mode, throughput, update.on_demand_throughput, update.warm_throughput
    )
    if update.warm_throughput is None:
        return changed
    # Answers show the old warm throughput during the update.
    return replace(
        changed,
        warm_throughput=index.warm_throughput,
        pending_warm_throughput=changed.warm_throughput,
    )


def after_update(index: GlobalIndex) -> GlobalIndex:
    """An index after its update: with the requested throughput, ACTIVE or still in backfill."""
    return replace(
        index,
        status="CREATING" if index.backfilling else "ACTIVE",
        throughput=index.pending_throughput or index.throughput,
        pending_throughput=None,
        warm_throughput=index.pending_warm_throughput or index.warm_throughput,
        pending_warm_throughput=None,
    )


def with_created(
    definition: TableDefinition, index: NewGlobalIndex, definitions: Sequence[KeyAttribute]
) -> TableDefinition:
    """A table with an index in phase 1 (S177, S182); raises ``ValidationException``.

    ``definitions`` are the request's. They must define the index's key, with the table's types of
    attributes that the table already defines. Definitions outside of that key are ignored, because
    clients send those of indexes they will add next.
    """
    known = {attribute.name: attribute for attribute in definition.attribute_definitions}
    made = new_global_index(index, definition.next_index_id, definitions, definition.billing_mode)
    _check_same_types(definition, made.definition.key_schema, known)
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


def _check_same_types(
    definition: TableDefinition, key: KeySchema, known: Mapping[str, KeyAttribute]
) -> None:
    """Refuse a new index whose key gives an attribute another type than the table.

    The existing schema is inferred: the first key that has the attribute, of table or indexes.
    """
    keys = [definition.key_schema, *(index.key_schema for index in definition.indexes)]
    for attribute in key.attributes:
        if known.get(attribute.name, attribute) == attribute:
            continue
        existing = next(each for each in keys if attribute.name in each.names)
        raise invalid_value(
            "Attributes cannot be redefined. Please check that your attribute has the same type as "
            f"previously defined. Existing schema: {_shown(existing)} New schema: {_shown(key)}"
        )


def _shown(key: KeySchema) -> str:
    """A key as this error shows it."""
    elements = (
        f"SchemaElement: key{{{attribute.name}:{attribute.type}:{role}}}"
        for role, attributes in (("HASH", key.partition), ("RANGE", key.sort))
        for attribute in attributes
    )
    return f"Schema:[{', '.join(elements)}]"


def with_deleted(definition: TableDefinition, name: str) -> TableDefinition:
    """A table with an index in deletion, without the attribute definitions that only it used."""
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

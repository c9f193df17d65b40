"""Rules for the settings of CreateTable, and for the statuses of tables.

The parts have rules of their own: ``schema_rules``, ``global_index_rules``, ``stream_rules``,
``throughput_rules``, ``tag_rules``. This module applies them in DynamoDB's order. The database adds
identities and times.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dynactor.model.account import REGION
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.definitions.table import (
    AttachedPolicy,
    BillingMode,
    GlobalIndex,
    TableClass,
    TableDefinition,
    TableStatus,
    Throughput,
)
from dynactor.model.errors import ResourceInUseException, ValidationException, invalid_value
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables import (
    changes_in_progress,
    global_index_changes,
    global_index_rules,
    schema_rules,
    stream_rules,
    tag_rules,
    throughput_rules,
)
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement, NewIndex
from dynactor.model.tables.stream_rules import StreamChange

_DOING: Final[dict[TableStatus, str]] = {
    "CREATING": "created",
    "UPDATING": "updated",
    "DELETING": "deleted",
    "ACTIVE": "used",
}


class NewTable(Struct, frozen=True):
    """A table as requested by CreateTable; None marks an omitted member."""

    name: str
    key_schema: tuple[KeyElement, ...]
    attribute_definitions: tuple[KeyAttribute, ...]
    local_indexes: tuple[NewIndex, ...] | None = None
    global_indexes: tuple[NewGlobalIndex, ...] | None = None
    stream: StreamChange | None = None
    billing_mode: BillingMode | None = None
    throughput: Throughput | None = None
    table_class: TableClass | None = None
    deletion_protection: bool | None = None
    sse_specification: dict[str, Any] | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None
    tags: tuple[tuple[str, str], ...] = ()
    policies: tuple[AttachedPolicy, ...] = ()


def without_unused_definitions(table: NewTable) -> NewTable:
    """The same table without the attribute definitions that no key uses."""
    indexes = (*(table.local_indexes or ()), *(table.global_indexes or ()))
    schemas = (table.key_schema, *(index.key_schema for index in indexes))
    used = {element.name for schema in schemas for element in schema}
    definitions = tuple(each for each in table.attribute_definitions if each.name in used)
    return replace(table, attribute_definitions=definitions)


def define(table: NewTable, region: str = REGION) -> TableDefinition:
    """The definition of a new table; the error of a quota names the region.

    The caller sets ``table_id``, ``uuid`` and times. Raises ``ValidationException`` with DynamoDB's
    message for the first fault in its order, or ``LimitExceededException`` above the account's
    quota.
    """
    _check_quotas(table, region)
    billing_mode = table.billing_mode or "PROVISIONED"
    throughput = table.throughput or throughput_rules.ON_DEMAND_THROUGHPUT
    key_schema, indexes, global_indexes = _keys(table, billing_mode)
    return TableDefinition(
        name=table.name,
        table_id=0,
        uuid="",
        created_epoch_seconds=0.0,
        attribute_definitions=table.attribute_definitions,
        key_schema=key_schema,
        local_indexes=indexes,
        global_indexes=global_indexes,
        stream=stream_rules.new_table_stream(table.stream),
        billing_mode=billing_mode,
        throughput=throughput,
        table_class=table.table_class,
        deletion_protection=table.deletion_protection or False,
        sse_specification=checked_sse(table.sse_specification),
        on_demand_throughput=(
            None
            if table.on_demand_throughput is None
            else throughput_rules.on_demand_limits(
                billing_mode, None, table.on_demand_throughput, with_new_table=True
            )
        ),
        warm_throughput=(
            None
            if table.warm_throughput is None
            else throughput_rules.warm(billing_mode, throughput, None, table.warm_throughput)
        ),
        tags=tag_rules.added((), table.tags),
        policies=table.policies,
        next_index_id=len(indexes) + len(global_indexes) + 1,
    )


def _check_quotas(table: NewTable, region: str) -> None:
    throughput_rules.check_of_new_table(table.billing_mode, table.throughput, region)
    throughput_rules.check_most_warm(table.warm_throughput, region)
    for index in table.global_indexes or ():
        if index.throughput is not None and table.billing_mode in (None, "PROVISIONED"):
            throughput_rules.check_bounds_of_index(index.name, index.throughput, region)
        throughput_rules.check_most_warm(index.warm_throughput, region)


def _keys(
    table: NewTable, billing_mode: BillingMode
) -> tuple[KeySchema, tuple[IndexDefinition, ...], tuple[GlobalIndex, ...]]:
    """The key schema, the local indexes and the global indexes of a new table."""
    definitions = table.attribute_definitions
    key_schema = schema_rules.table_key(table.key_schema, definitions)
    # DynamoDB reports definitions that no key uses before other faults of the indexes.
    local_keys = schema_rules.local_keys(table.local_indexes, key_schema, definitions)
    global_keys = global_index_rules.new_index_keys(table.global_indexes, definitions)
    schema_rules.check_definitions_used(definitions, key_schema, [*local_keys, *global_keys])
    indexes: tuple[IndexDefinition, ...] = ()
    if table.local_indexes is not None:
        indexes = schema_rules.local_indexes(table.local_indexes, key_schema, definitions)
    global_indexes: tuple[GlobalIndex, ...] = ()
    if table.global_indexes is not None:
        global_indexes = global_index_rules.new_table_indexes(
            table.global_indexes, definitions, billing_mode, indexes
        )
    schema_rules.check_projected_count([*indexes, *(index.definition for index in global_indexes)])
    return key_schema, indexes, global_indexes


def checked_sse(wanted: dict[str, Any] | None) -> dict[str, Any] | None:
    """The SSESpecification to store and show; None for AWS's own key, which is not shown."""
    if wanted is None:
        return None
    if wanted.get("SSEType") == "AES256":
        raise invalid_value("SSEType AES256 is not supported")
    return {**wanted, "SSEType": "KMS"} if wanted.get("Enabled") else None


def settings_status(definition: TableDefinition) -> TableStatus:
    """The status of a table that is neither created nor deleted; it is ACTIVE while it warms up."""
    is_updating = bool({*definition.changing} - {"WARM_THROUGHPUT"})
    return "UPDATING" if is_updating or definition.is_allocating else "ACTIVE"


def after_edit(definition: TableDefinition) -> TableDefinition:
    """The definition to store after ``apply_edit``, with the status of the changes in progress."""
    if definition.status in ("CREATING", "DELETING"):
        return definition
    return replace(definition, status=settings_status(definition))


def settled(definition: TableDefinition) -> TableDefinition:
    """A table after all its updates; UPDATING while an index allocates resources."""
    if definition.status in ("CREATING", "DELETING"):
        return definition
    return after_update(
        replace(
            definition,
            global_indexes=tuple(
                global_index_changes.after_update(index) if index.status == "UPDATING" else index
                for index in definition.global_indexes
            ),
        )
    )


def activated(definition: TableDefinition) -> TableDefinition:
    """A table after its creation."""
    return replace(definition, status="ACTIVE")


def after_update(definition: TableDefinition) -> TableDefinition:
    """A table with the requested throughput; ACTIVE unless an index allocates resources."""
    definition = replace(
        definition,
        changing=(),
        throughput=definition.pending_throughput or definition.throughput,
        pending_throughput=None,
        warm_throughput=definition.pending_warm_throughput or definition.warm_throughput,
        pending_warm_throughput=None,
        on_demand_since_epoch_seconds=(
            definition.pending_on_demand_since_epoch_seconds
            or definition.on_demand_since_epoch_seconds
        ),
        pending_on_demand_since_epoch_seconds=None,
    )
    return after_edit(definition)


def check_deletable(definition: TableDefinition) -> None:
    """Refuse to delete a table that is protected, is changing, or has a changing index.

    Raises ``ValidationException`` if it is protected, else ``ResourceInUseException``. A table that
    is warmed up counts as ACTIVE.
    """
    if definition.status in ("CREATING", "DELETING"):
        raise in_use(definition)
    changes_in_progress.check(definition, ["TABLE_DELETION"])
    if definition.deletion_protection:
        raise ValidationException(
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first."
        )


def in_use(definition: TableDefinition) -> ResourceInUseException:
    """The error for a change of a table that is already changing."""
    return ResourceInUseException(
        "Attempt to change a resource which is still in use: Table is being "
        f"{_DOING[definition.status]}: {definition.name}"
    )

"""What CreateTable may define, and what UpdateTable may change of it.

The parts have rules of their own: ``schema_rules``, ``throughput_rules``, ``tag_rules``. Here
they come in DynamoDB's order. Identities and times are the database's to fill in.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from model import schema_rules, tag_rules, throughput_rules
from model.errors import ValidationException
from model.key import KeyAttribute
from model.schema_rules import INVALID, KeyElement, NewIndex
from model.table import BillingMode, TableClass, TableDefinition, Throughput

NOTHING_TO_UPDATE: Final = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
    "GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required"
)


class NewTable(Struct, frozen=True):
    """A table as CreateTable asks for it; None stands for a member that was left out."""

    name: str
    key_schema: tuple[KeyElement, ...]
    attribute_definitions: tuple[KeyAttribute, ...]
    local_indexes: tuple[NewIndex, ...] | None = None
    billing_mode: BillingMode | None = None
    throughput: Throughput | None = None
    table_class: TableClass | None = None
    deletion_protection: bool | None = None
    sse_specification: dict[str, Any] | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None
    resource_policy: str | None = None
    tags: tuple[tuple[str, str], ...] = ()


class TableEdit(Struct, frozen=True):
    """A change of a table's settings; None stands for a member that was left out.

    Members with wire names in them (``on_demand_throughput`` and such) hold only the members
    that were given.
    """

    billing_mode: BillingMode | None = None
    throughput: Throughput | None = None
    table_class: TableClass | None = None
    deletion_protection: bool | None = None
    sse_specification: dict[str, Any] | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None
    tags_to_add: tuple[tuple[str, str], ...] | None = None
    tag_keys_to_remove: tuple[str, ...] | None = None


def define(table: NewTable) -> TableDefinition:
    """The definition of a new table; ``table_id``, ``uuid`` and times are still empty.

    Raises:
        ValidationException: DynamoDB's message for the first fault in its order.
    """
    throughput_rules.check_with_billing_mode(table.billing_mode, table.throughput)
    billing_mode = table.billing_mode or "PROVISIONED"
    throughput = table.throughput or throughput_rules.ON_DEMAND_THROUGHPUT
    definitions = table.attribute_definitions
    key_schema = schema_rules.table_key(table.key_schema, definitions)
    indexes = (
        ()
        if table.local_indexes is None
        else schema_rules.local_indexes(table.local_indexes, key_schema, definitions)
    )
    schema_rules.check_definitions_used(definitions, key_schema, indexes)
    return TableDefinition(
        name=table.name,
        table_id=0,
        uuid="",
        created_epoch_seconds=0.0,
        attribute_definitions=definitions,
        key_schema=key_schema,
        local_indexes=indexes,
        billing_mode=billing_mode,
        throughput=throughput,
        table_class=table.table_class,
        deletion_protection=table.deletion_protection or False,
        sse_specification=_checked_sse(table.sse_specification),
        on_demand_throughput=(
            None
            if table.on_demand_throughput is None
            else throughput_rules.on_demand_limits(billing_mode, None, table.on_demand_throughput)
        ),
        warm_throughput=(
            None
            if table.warm_throughput is None
            else throughput_rules.warm(billing_mode, throughput, None, table.warm_throughput)
        ),
        resource_policy=table.resource_policy,
        tags=tag_rules.added((), table.tags),
        next_index_id=len(indexes) + 1,
    )


def _checked_sse(wanted: dict[str, Any] | None) -> dict[str, Any] | None:
    """Encryption as it is shown back; without it a table has AWS's own key, and shows nothing."""
    if wanted is None:
        return None
    if wanted.get("SSEType") == "AES256":
        raise ValidationException(f"{INVALID}SSEType AES256 is not supported")
    return {**wanted, "SSEType": "KMS"} if wanted.get("Enabled") else None


def check_edit(edit: TableEdit) -> None:
    """What can be said of an UpdateTable before its table is looked at.

    Raises:
        ValidationException: nothing is asked for, or it can't be so in any table.
    """
    if edit == TableEdit():
        raise ValidationException(NOTHING_TO_UPDATE)
    if edit.billing_mode == "PROVISIONED" and edit.throughput is None:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
        )
    if edit.throughput is not None:
        throughput_rules.check_bounds(edit.throughput)


def apply_edit(
    definition: TableDefinition, edit: TableEdit, now_epoch_seconds: float
) -> TableDefinition:
    """The definition after a change that ``check_edit`` let pass.

    Its status is UPDATING if the change is of a kind for which DynamoDB shows that state.

    Raises:
        ValidationException: this table can't be changed so.
    """
    changed = _with_capacity(definition, edit, now_epoch_seconds)
    if edit.table_class is not None and edit.table_class != (definition.table_class or "STANDARD"):
        changed = replace(
            changed,
            table_class=edit.table_class,
            table_class_changed_epoch_seconds=now_epoch_seconds,
        )
    if edit.sse_specification is not None:
        changed = replace(changed, sse_specification=_checked_sse(edit.sse_specification))
    if changed != definition:
        changed = replace(changed, status="UPDATING")
    if edit.deletion_protection is not None:
        changed = replace(changed, deletion_protection=edit.deletion_protection)
    if edit.tags_to_add is not None:
        changed = replace(changed, tags=tag_rules.added(changed.tags, edit.tags_to_add))
    if edit.tag_keys_to_remove is not None:
        changed = replace(changed, tags=tag_rules.removed(changed.tags, edit.tag_keys_to_remove))
    return changed


def _with_capacity(
    definition: TableDefinition, edit: TableEdit, now_epoch_seconds: float
) -> TableDefinition:
    billing_mode = edit.billing_mode or definition.billing_mode
    if edit.throughput is not None:
        throughput_rules.check_with_billing_mode(billing_mode, edit.throughput)
        throughput_rules.check_changes(definition.throughput, edit.throughput)
        definition = replace(
            definition,
            throughput=throughput_rules.changed(
                definition.throughput, edit.throughput, now_epoch_seconds
            ),
        )
    if billing_mode != definition.billing_mode:
        definition = (
            _on_demand(definition, now_epoch_seconds)
            if billing_mode == "PAY_PER_REQUEST"
            else replace(definition, billing_mode=billing_mode, on_demand_throughput=None)
        )
    if edit.on_demand_throughput is not None:
        limits = throughput_rules.on_demand_limits(
            billing_mode, definition.on_demand_throughput, edit.on_demand_throughput
        )
        definition = replace(definition, on_demand_throughput=limits)
    if edit.warm_throughput is not None:
        warm = throughput_rules.warm(
            billing_mode,
            definition.throughput,
            definition.warm_throughput,
            edit.warm_throughput,
        )
        definition = replace(definition, warm_throughput=warm)
    return definition


def _on_demand(definition: TableDefinition, now_epoch_seconds: float) -> TableDefinition:
    """The switch to on-demand is no decrease: its time and count stay as they were."""
    return replace(
        definition,
        billing_mode="PAY_PER_REQUEST",
        on_demand_since_epoch_seconds=now_epoch_seconds,
        throughput=replace(definition.throughput, read_units=0, write_units=0),
    )


def check_deletable(definition: TableDefinition) -> None:
    """Refuse to delete a protected table.

    Raises:
        ValidationException: deletion protection is on.
    """
    if definition.deletion_protection:
        raise ValidationException(
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first."
        )

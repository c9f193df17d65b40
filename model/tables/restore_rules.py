"""The definition of a table restored from a backup.

The definition equals that of the source table, except for the request's overrides and for settings
that DynamoDB never restores. These are stream, time to live, tags, deletion protection, policies
and table class. Warm throughput is not restored either; the new table has that of its throughput.
An override may rename an index. The rules of a new table apply. The message for an index that the
source lacks is modeled on the messages of those rules. Source: Developer Guide, "Restoring a
DynamoDB table from a backup".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynactor.model.account import REGION
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.definitions.table import BillingMode, GlobalIndex, TableDefinition, Throughput
from dynactor.model.errors import invalid_value
from dynactor.model.keys.key import KeySchema
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement, NewIndex, used_names
from dynactor.model.tables.table_rules import NewTable, define


class RestoreOverrides(Struct, frozen=True):
    """The request's overrides; None marks an omitted member.

    Indexes are those of the source that the new table keeps.
    """

    billing_mode: BillingMode | None = None
    throughput: Throughput | None = None
    on_demand_throughput: dict[str, Any] | None = None
    sse_specification: dict[str, Any] | None = None
    local_indexes: tuple[NewIndex, ...] | None = None
    global_indexes: tuple[NewGlobalIndex, ...] | None = None


def restored(
    source: TableDefinition, name: str, overrides: RestoreOverrides, region: str = REGION
) -> TableDefinition:
    """The definition of a new table, without ids and times; raises ``ValidationException``."""
    billing_mode = overrides.billing_mode or source.billing_mode
    local_indexes = _local_indexes(source, overrides.local_indexes)
    global_indexes = _global_indexes(source, overrides.global_indexes, billing_mode)
    used = used_names(source.key_schema, ()) | {
        element.name for index in (*local_indexes, *global_indexes) for element in index.key_schema
    }
    keeps_mode = billing_mode == source.billing_mode
    return define(
        NewTable(
            name,
            _elements(source.key_schema),
            tuple(each for each in source.attribute_definitions if each.name in used),
            local_indexes or None,
            global_indexes or None,
            billing_mode=billing_mode,
            throughput=overrides.throughput or _units(billing_mode, source, source.throughput),
            sse_specification=(
                source.sse_specification
                if overrides.sse_specification is None
                else overrides.sse_specification
            ),
            on_demand_throughput=(
                source.on_demand_throughput
                if overrides.on_demand_throughput is None and keeps_mode
                else overrides.on_demand_throughput
            ),
        ),
        region,
    )


def _local_indexes(
    source: TableDefinition, wanted: Sequence[NewIndex] | None
) -> tuple[NewIndex, ...]:
    if wanted is None:
        return tuple(map(_as_new, source.local_indexes))
    for index in wanted:
        _match(index, {each.name: each for each in source.local_indexes})
    return tuple(wanted)


def _global_indexes(
    source: TableDefinition, wanted: Sequence[NewGlobalIndex] | None, billing_mode: BillingMode
) -> tuple[NewGlobalIndex, ...]:
    # A backup does not include an index in deletion.
    kept = {
        index.definition.name: index
        for index in source.global_indexes
        if index.status != "DELETING"
    }
    if wanted is None:
        return tuple(_as_new_global(source, index, billing_mode) for index in kept.values())
    chosen = []
    for index in wanted:
        name = _match(index, {name: each.definition for name, each in kept.items()})
        restored_index = _as_new_global(source, kept[name], billing_mode)
        chosen.append(
            replace(
                index,
                throughput=index.throughput or restored_index.throughput,
                on_demand_throughput=(
                    restored_index.on_demand_throughput
                    if index.on_demand_throughput is None
                    else index.on_demand_throughput
                ),
            )
        )
    return tuple(chosen)


def _match(wanted: NewIndex, originals: Mapping[str, IndexDefinition]) -> str:
    """Name of the source's index with this key and projection; raises ``ValidationException``."""
    for name in sorted(originals, key=lambda name: name != wanted.name):
        restored_index = _as_new(originals[name])
        if (
            wanted.key_schema == restored_index.key_schema
            and wanted.projection_type == restored_index.projection_type
            and set(wanted.non_key_attributes or ()) == set(restored_index.non_key_attributes or ())
        ):
            return name
    raise invalid_value(f"Index {wanted.name} does not match any index of the source table")


def _as_new(index: IndexDefinition) -> NewIndex:
    return NewIndex(
        index.name,
        _elements(index.key_schema),
        index.projection.type,
        index.projection.non_key_attributes or None,
    )


def _as_new_global(
    source: TableDefinition, index: GlobalIndex, billing_mode: BillingMode
) -> NewGlobalIndex:
    definition = index.definition
    return NewGlobalIndex(
        definition.name,
        _elements(definition.key_schema),
        definition.projection.type,
        definition.projection.non_key_attributes or None,
        throughput=_units(billing_mode, source, index.throughput),
        on_demand_throughput=(
            index.on_demand_throughput if billing_mode == source.billing_mode else None
        ),
    )


def _units(
    billing_mode: BillingMode, source: TableDefinition, throughput: Throughput
) -> Throughput | None:
    """The source's units, if both tables are provisioned."""
    if billing_mode == "PAY_PER_REQUEST" or source.billing_mode == "PAY_PER_REQUEST":
        return None
    return Throughput(throughput.read_units, throughput.write_units)


def _elements(schema: KeySchema) -> tuple[KeyElement, ...]:
    return (
        *(KeyElement(attribute.name, "HASH") for attribute in schema.partition),
        *(KeyElement(attribute.name, "RANGE") for attribute in schema.sort),
    )

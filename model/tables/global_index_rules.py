"""Rules for the definition of a global secondary index.

Messages are dynalite's (measured on AWS) if it has them, else DynamoDB Local's, which come from the
service's own classes. Messages that neither has are marked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.definitions.table import BillingMode, GlobalIndex, Throughput
from dynactor.model.errors import invalid_value
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import GLOBAL_INDEX_KEY_ATTRIBUTES, GLOBAL_INDEXES
from dynactor.model.tables import schema_rules, throughput_rules
from dynactor.model.tables.schema_rules import KeyElement, NewIndex


class NewGlobalIndex(NewIndex, frozen=True):
    """A global secondary index, as requested."""

    throughput: Throughput | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None


class GlobalIndexUpdate(Struct, frozen=True):
    """New throughput for a global secondary index; None marks an omitted member."""

    name: str
    throughput: Throughput | None = None
    on_demand_throughput: dict[str, Any] | None = None
    warm_throughput: dict[str, Any] | None = None


def new_index_keys(
    indexes: Sequence[NewGlobalIndex] | None, definitions: Sequence[KeyAttribute]
) -> list[KeySchema]:
    """The keys of a new table's global indexes; raises ``ValidationException``."""
    if indexes is None:
        return []
    if not indexes:
        raise invalid_value("List of GlobalSecondaryIndexes is empty")
    return [_key(index.key_schema, definitions) for index in indexes]


def new_table_indexes(
    indexes: Sequence[NewGlobalIndex],
    definitions: Sequence[KeyAttribute],
    billing_mode: BillingMode,
    local_indexes: Sequence[IndexDefinition],
) -> tuple[GlobalIndex, ...]:
    """The global indexes of a new table, whose keys are valid; raises ``ValidationException``.

    Their ids follow the ids of its local indexes.
    """
    taken = {index.name for index in local_indexes}
    made: list[GlobalIndex] = []
    for index_id, index in enumerate(indexes, start=len(local_indexes) + 1):
        made.append(
            new_global_index(
                index, index_id, definitions, billing_mode, taken=taken, with_new_table=True
            )
        )
        taken.add(index.name)
    if len(made) > GLOBAL_INDEXES:
        raise invalid_value(
            f"GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES}"
        )
    return tuple(made)


def new_global_index(
    index: NewGlobalIndex,
    index_id: int,
    definitions: Sequence[KeyAttribute],
    billing_mode: BillingMode,
    *,
    taken: Collection[str] = (),
    with_new_table: bool = False,
) -> GlobalIndex:
    """A new global index with this id; raises ``ValidationException``."""
    key = _key(index.key_schema, definitions)
    projection = schema_rules.index_projection(index)
    throughput_rules.check_of_index(
        billing_mode, index.name, index.throughput, with_new_table=with_new_table
    )
    schema_rules.check_new_name(index.name, taken)
    made = GlobalIndex(
        IndexDefinition(index_id, index.name, key, projection),
        throughput=index.throughput or throughput_rules.ON_DEMAND_THROUGHPUT,
    )
    return with_other_throughput(
        made,
        billing_mode,
        made.throughput,
        index.on_demand_throughput,
        index.warm_throughput,
        with_new_table=with_new_table,
    )


def _key(elements: Sequence[KeyElement], definitions: Sequence[KeyAttribute]) -> KeySchema:
    """The key of a global index: up to four attributes of each kind, HASH before RANGE."""
    attributes = schema_rules.key_attributes(elements, definitions)
    roles = [element.role for element in elements]
    partitions = roles.count("HASH")
    if "RANGE" in roles[:partitions]:
        raise invalid_value(
            "All HASH key attributes must precede RANGE key attributes in the KeySchema"
        )
    key = KeySchema(attributes[:partitions], attributes[partitions:])
    for role, role_attributes in (("HASH", key.partition), ("RANGE", key.sort)):
        if len(role_attributes) > GLOBAL_INDEX_KEY_ATTRIBUTES:
            raise invalid_value(
                f"The KeySchema exceeds the maximum allowed number of {role} key attributes"
            )
    return key


def with_other_throughput(
    index: GlobalIndex,
    billing_mode: BillingMode,
    throughput: Throughput,
    on_demand: dict[str, Any] | None,
    warm: dict[str, Any] | None,
    *,
    with_new_table: bool = False,
) -> GlobalIndex:
    """An index with other on-demand limits and warm throughput; raises ``ValidationException``."""
    name = index.definition.name
    for member, value in (("OnDemandThroughput", on_demand), ("WarmThroughput", warm)):
        if value == {}:
            # AWS refuses this; the text is inferred.
            raise invalid_value(f"{member} is empty for index: {name}")
    if on_demand is not None:
        limits = throughput_rules.on_demand_limits(
            billing_mode,
            index.on_demand_throughput,
            on_demand,
            f"index : {name}",
            with_new_table=with_new_table,
        )
        index = replace(index, on_demand_throughput=limits)
    if warm is not None:
        held = throughput_rules.warm(
            billing_mode, throughput, index.warm_throughput, warm, f"index {name}"
        )
        index = replace(index, warm_throughput=held)
    return index


def check_named_once(names: Sequence[str]) -> None:
    """Refuse two changes of one index in a request; raises ``ValidationException``."""
    for at, name in enumerate(names):
        if name in names[:at]:
            raise invalid_value(
                "Only one global secondary index update per index is allowed simultaneously. "
                f"Index: {name}"
            )

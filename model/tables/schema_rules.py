"""Rules for keys and projections of tables and local indexes, some shared with global indexes.

The checks follow DynamoDB's order: the first fault of a request decides its message. Messages and
order are AWS's, as measured by dynalite's suites. Comments mark the messages that those suites
don't cover. Such a message is DynamoDB Local's, or is worded like a similar message of AWS.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from dynactor.model.definitions.index import IndexDefinition, Projection, ProjectionType
from dynactor.model.definitions.table import TABLE_INDEX_ID
from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import LOCAL_INDEXES, PROJECTED_ATTRIBUTES

KeyRole: TypeAlias = Literal["HASH", "RANGE"]


class KeyElement(Struct, frozen=True):
    """One element of a KeySchema, as requested."""

    name: str
    role: KeyRole


class NewIndex(Struct, frozen=True):
    """A secondary index, as requested."""

    name: str
    key_schema: tuple[KeyElement, ...]
    projection_type: ProjectionType | None
    non_key_attributes: tuple[str, ...] | None = None


def table_key(elements: Sequence[KeyElement], definitions: Sequence[KeyAttribute]) -> KeySchema:
    """The key of a table; raises ``ValidationException``."""
    if len(elements) > len(definitions):
        raise ValidationException("Invalid KeySchema: Some index key attribute have no definition")
    return _key(elements, definitions)


def _key(elements: Sequence[KeyElement], definitions: Sequence[KeyAttribute]) -> KeySchema:
    attributes = key_attributes(elements, definitions)
    if len(elements) > 1 and elements[1].role != "RANGE":
        raise ValidationException(
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"
        )
    if len(elements) > 2:  # noqa: PLR2004 - a partition and a sort attribute
        # DynamoDB Local's message: the service model has no maximum since global indexes may have
        # keys of several attributes.
        raise ValidationException(
            "Key Schema too big.  Key Schema must at most consist of the hash and range key "
            "of a table"
        )
    return KeySchema(partition=attributes[:1], sort=attributes[1:])


def key_attributes(
    elements: Sequence[KeyElement], definitions: Sequence[KeyAttribute]
) -> tuple[KeyAttribute, ...]:
    """The attributes of any key, in its order; raises ``ValidationException``."""
    defined = {definition.name: definition for definition in definitions}
    if any(element.name not in defined for element in elements):
        raise invalid_value(
            "Some index key attributes are not defined in AttributeDefinitions. Keys: "
            f"{_listed(element.name for element in elements)}, AttributeDefinitions: "
            f"{_listed(definition.name for definition in definitions)}"
        )
    if len({element.name for element in elements}) < len(elements):
        raise ValidationException(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name"
        )
    if elements[0].role != "HASH":
        raise ValidationException(
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
        )
    return tuple(defined[element.name] for element in elements)


def local_keys(
    indexes: Sequence[NewIndex] | None, table: KeySchema, definitions: Sequence[KeyAttribute]
) -> list[KeySchema]:
    """The keys of a table's local secondary indexes; raises ``ValidationException``."""
    if indexes is None:
        return []
    if not indexes:
        raise invalid_value("List of LocalSecondaryIndexes is empty")
    if not table.sort:
        raise invalid_value(
            "Table KeySchema does not have a range key, which is required when specifying a "
            "LocalSecondaryIndex"
        )
    return [_local_index_key(index, table, definitions) for index in indexes]


def local_indexes(
    indexes: Sequence[NewIndex], table: KeySchema, definitions: Sequence[KeyAttribute]
) -> tuple[IndexDefinition, ...]:
    """Local indexes whose keys are valid (S4-S9, S16-S19, S27); raises ``ValidationException``."""
    made: dict[str, IndexDefinition] = {}
    for index_id, index in enumerate(indexes, start=TABLE_INDEX_ID + 1):
        key = _local_index_key(index, table, definitions)
        projection = index_projection(index)
        check_new_name(index.name, made)
        made[index.name] = IndexDefinition(index_id, index.name, key, projection)
    if len(indexes) > LOCAL_INDEXES:
        raise invalid_value(
            f"Number of LocalSecondaryIndexes exceeds per-table limit of {LOCAL_INDEXES}"
        )
    return tuple(made.values())


def check_new_name(name: str, taken: Collection[str]) -> None:
    """Refuse a second index, local or global, of the same name; raises ``ValidationException``."""
    if name in taken:
        raise invalid_value(f"Duplicate index name: {name}")


def _local_index_key(
    index: NewIndex, table: KeySchema, definitions: Sequence[KeyAttribute]
) -> KeySchema:
    key = _key(index.key_schema, definitions)
    if not key.sort:
        raise invalid_value(f"Index KeySchema does not have a range key for index: {index.name}")
    if key.partition != table.partition:
        raise invalid_value(
            "Index KeySchema does not have the same leading hash key as table KeySchema for index: "
            f"{index.name}. index hash key: {key.partition[0].name}, table hash key: "
            f"{table.partition[0].name}"
        )
    return key


def index_projection(index: NewIndex) -> Projection:
    """The requested projection of an index; raises ``ValidationException``."""
    if index.projection_type is None:
        raise invalid_value("Unknown ProjectionType: null")
    names = index.non_key_attributes
    if index.projection_type != "INCLUDE":
        if names is not None:
            raise invalid_value(
                f"ProjectionType is {index.projection_type}, but NonKeyAttributes is specified"
            )
        return Projection(index.projection_type)
    if names is None:
        raise invalid_value("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    if len(set(names)) < len(names):
        # AWS refuses this, too. AWS's message is unknown, so this one is our own.
        raise invalid_value("Duplicate attribute name in NonKeyAttributes")
    return Projection("INCLUDE", names)


def check_projected_count(indexes: Iterable[IndexDefinition]) -> None:
    """Check the number of projected attributes, counted once for each index ("Quotas").

    Raises ``ValidationException`` if all indexes of the table together project too many attributes.
    """
    projected = sum(len(index.projection.non_key_attributes) for index in indexes)
    if projected > PROJECTED_ATTRIBUTES:
        # AWS refuses this, too. AWS's message is unknown, so this one is our own.
        raise invalid_value(
            f"Number of projected attributes {projected} over all indexes exceeds per-table limit "
            f"of {PROJECTED_ATTRIBUTES}"
        )


def check_definitions_used(
    definitions: Sequence[KeyAttribute], table: KeySchema, indexes: Sequence[KeySchema]
) -> None:
    """Refuse definitions that no key uses, and two of the same name, as CreateTable does.

    ``indexes`` are the keys of the table's indexes. Raises ``ValidationException``.
    """
    check_definitions_differ(definitions)
    names = [definition.name for definition in definitions]
    used = _names(table, *indexes)
    if len(used) == len(names):
        return
    if not indexes:
        raise invalid_value(
            "Number of attributes in KeySchema does not exactly match number of attributes defined "
            "in AttributeDefinitions"
        )
    raise invalid_value(
        f"Some AttributeDefinitions are not used. AttributeDefinitions: {_listed(names)}, keys "
        f"used: {_listed(name for name in names if name in used)}"
    )


def check_definitions_differ(definitions: Sequence[KeyAttribute]) -> None:
    """Refuse two definitions of one name; raises ``ValidationException``."""
    names = [definition.name for definition in definitions]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise ValidationException(f"Attribute Name is duplicated: {name}")


def used_names(table: KeySchema, indexes: Iterable[IndexDefinition]) -> set[str]:
    """The names of all attributes that are part of a key."""
    return _names(table, *(index.key_schema for index in indexes))


def _names(*schemas: KeySchema) -> set[str]:
    return {attribute.name for schema in schemas for attribute in schema.attributes}


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"

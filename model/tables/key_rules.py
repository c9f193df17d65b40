"""Rules for the key attributes of an item, a key or a start key.

Messages were measured on AWS by the authors of dynalite, and on DynamoDB Local.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynactor.model.definitions.index import SHORT_KEY_CHARACTERS, IndexDefinition, part_size_bytes
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.key_conditions.key_condition import KeyCondition
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import PARTITION_KEY_BYTES, SORT_KEY_BYTES
from dynactor.model.tables.schema_rules import KeyRole
from dynactor.model.values import attribute_value
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item

NO_MATCH = "The provided key element does not match the schema"


def check_item_key(schema: KeySchema, item: Item) -> None:
    """Check that an item to put has the table's key; raises ``ValidationException``."""
    for attribute in schema.attributes:
        value = item.get(attribute.name)
        if value is None:
            raise invalid_value(f"Missing the key {attribute.name} in the item")
        if attribute.type not in value:
            raise invalid_value(
                f"Type mismatch for key {attribute.name} expected: {attribute.type} actual: "
                f"{attribute_value.data_type(value)}"
            )
    _check_sizes(schema, item)


def check_key(schema: KeySchema, key: Item) -> None:
    """Check that a Key parameter is exactly a key of the table; raises ``ValidationException``."""
    attributes = schema.attributes
    if len(key) != len(attributes):
        raise ValidationException(NO_MATCH)
    for attribute in attributes:
        value = key.get(attribute.name)
        if value is None or attribute.type not in value:
            raise ValidationException(NO_MATCH)
    _check_sizes(schema, key)


def check_key_not_empty(schema: KeySchema, item: Item) -> None:
    """Check only that an item or key has no empty key attribute; raises ``ValidationException``."""
    for attribute in schema.attributes:
        value = item.get(attribute.name)
        if value is not None and attribute.type in value:
            _check_not_empty(attribute, value)


def _check_sizes(schema: KeySchema, item: Item) -> None:
    for attribute in schema.partition:
        _check_not_empty(attribute, item[attribute.name])
        if attribute_value.size_bytes(item[attribute.name]) > PARTITION_KEY_BYTES:
            raise _too_long("HASH")
    for attribute in schema.sort:
        _check_not_empty(attribute, item[attribute.name])
        if attribute_value.size_bytes(item[attribute.name]) > SORT_KEY_BYTES:
            raise _too_long("RANGE")


def check_condition_size(condition: KeyCondition) -> None:
    """Check the values on the sort key in a Query's key condition (DynamoDB Local 3.3).

    The value that a condition compares with the partition key may be too long: no item has such a
    key, so the answer is empty. Raises ``ValidationException`` if the values together are longer
    than a sort key can be.
    """
    if not condition.sort:
        return
    *equalities, last = condition.sort
    before_bytes = sum(attribute_value.size_bytes(term.values[0]) for term in equalities)
    for value in last.values:
        if before_bytes + attribute_value.size_bytes(value) > SORT_KEY_BYTES:
            raise _too_long("RANGE")


def _too_long(role: KeyRole) -> ValidationException:
    if role == "HASH":
        return invalid_value(
            f"Size of hashkey has exceeded the maximum size limit of{PARTITION_KEY_BYTES} bytes"
        )
    return invalid_value(
        f"Aggregated size of all range keys has exceeded the size limit of {SORT_KEY_BYTES} bytes"
    )


def _check_not_empty(attribute: KeyAttribute, value: AttributeValue) -> None:
    if value[attribute.type] == "":
        kind = "string" if attribute.type == "S" else "binary"
        raise ValidationException(
            "One or more parameter values are not valid. The AttributeValue for a key attribute "
            f"cannot contain an empty {kind} value. Key: {attribute.name}"
        )


def check_batch_put_key(schema: KeySchema, item: Item) -> None:
    """Check an item's key, with BatchWriteItem's messages; raises ``ValidationException``."""
    for attribute in schema.attributes:
        value = item.get(attribute.name)
        if value is None or attribute.type not in value:
            raise ValidationException(NO_MATCH)
    _check_sizes(schema, item)


def check_index_keys(table: TableDefinition, item: Item) -> None:
    """Check the attributes of an item to put that are keys of the table's indexes (S40, S95).

    Raises ``ValidationException``.
    """
    for index in _written_indexes(table):
        _check_index_key(index, item, index.key_schema.attributes, updated=False)


def check_updated_index_keys(
    table: TableDefinition, item: Item, written: frozenset[str] | None
) -> None:
    """Check an item's updated attributes like ``check_index_keys``; raises ``ValidationException``.

    ``written`` are the names of the updated attributes; None for a new item, whose attributes are
    all checked.

    An item older than an index may break the rules of the index's key. Updates that do not change
    the faulty attribute succeed, and the item stays out of the index.
    """
    for index in _written_indexes(table):
        attributes = index.key_schema.attributes
        if written is not None:
            attributes = tuple(part for part in attributes if part.name in written)
        if attributes:
            _check_index_key(index, item, attributes, updated=True)


def check_index_key_types(table: TableDefinition, types: Mapping[str, str]) -> None:
    """Check the types that an update alone gives to index keys; raises ``ValidationException``.

    ``types`` are the new types of top-level attributes that follow from the update alone
    (``Update.static_types``).
    """
    for index in _written_indexes(table):
        for attribute in index.key_schema.attributes:
            if types.get(attribute.name, attribute.type) != attribute.type:
                raise _index_key_mismatch(index, attribute, types[attribute.name])


def check_index_keys_not_empty(table: TableDefinition, values: Item, *, updated: bool) -> None:
    """Check an item to put, or the values of an update, only for empty values of index keys.

    Raises ``ValidationException`` if an index key is empty.
    """
    for index in _written_indexes(table):
        for attribute in index.key_schema.attributes:
            if values.get(attribute.name, {}).get(attribute.type) == "":
                raise _empty_index_key(index, attribute, updated=updated)


def _written_indexes(table: TableDefinition) -> Sequence[IndexDefinition]:
    """The indexes that the table's writes maintain, in the order of the checks."""
    if not table.global_indexes:
        return table.local_indexes
    held = [index.definition for index in table.global_indexes if index.holds_entries]
    return [*held, *table.local_indexes]


def _check_index_key(
    index: IndexDefinition, item: Item, attributes: tuple[KeyAttribute, ...], *, updated: bool
) -> None:
    schema = index.key_schema
    all_short = len(schema.partition) == 1 and len(schema.sort) <= 1
    for attribute in attributes:
        value = item.get(attribute.name)
        if value is None:
            continue
        # Nearly every value has the right type and is short.
        content = value.get(attribute.type)
        if content and len(content) <= SHORT_KEY_CHARACTERS:
            continue
        if content is None:
            if updated:
                # ``check_index_key_types`` accepted the types known before the item was read.
                raise ValidationException(
                    "The update expression attempted to update the secondary index key to "
                    "unsupported type"
                )
            raise _index_key_mismatch(index, attribute, attribute_value.data_type(value))
        if content == "":
            raise _empty_index_key(index, attribute, updated=updated)
        all_short = False
    if all_short:
        return
    _check_part_size(index, "HASH", schema.partition, attributes, item)
    _check_part_size(index, "RANGE", schema.sort, attributes, item)


def _index_key_mismatch(
    index: IndexDefinition, attribute: KeyAttribute, actual_type: str
) -> ValidationException:
    return invalid_value(
        f"Type mismatch for Index Key {attribute.name} Expected: {attribute.type} Actual: "
        f"{actual_type} IndexName: {index.name}"
    )


def _empty_index_key(
    index: IndexDefinition, attribute: KeyAttribute, *, updated: bool
) -> ValidationException:
    kind = "string" if attribute.type == "S" else "binary"
    if updated:
        return ValidationException(
            "One or more parameter values are not valid. The update expression attempted to "
            "update a secondary index key to a value that is not supported. The AttributeValue "
            f"for a key attribute cannot contain an empty {kind} value."
        )
    return ValidationException(
        "One or more parameter values are not valid. A value specified for a secondary index "
        "key is not supported. The AttributeValue for a key attribute cannot contain an empty "
        f"{kind} value. IndexName: {index.name}, IndexKey: {attribute.name}"
    )


def _check_part_size(
    index: IndexDefinition,
    role: KeyRole,
    part: tuple[KeyAttribute, ...],
    checked: tuple[KeyAttribute, ...],
    item: Item,
) -> None:
    """Check the size of one part of a key; its attributes share the limit."""
    if not any(attribute in checked for attribute in part):
        return
    limit_bytes = PARTITION_KEY_BYTES if role == "HASH" else SORT_KEY_BYTES
    size_bytes = part_size_bytes(part, item)
    if size_bytes <= limit_bytes:
        return
    if len(part) == 1:
        raise _too_long(role)
    names = ", ".join(attribute.name for attribute in part)
    raise ValidationException(
        f"Aggregate size for {role} key attributes {names} of index {index.name} has exceeded "
        f"limit {limit_bytes} bytes, with actual size {size_bytes} bytes"
    )


def check_no_key_updated(schema: KeySchema, updated: frozenset[str]) -> None:
    """Check that an update changes no key attribute; raises ``ValidationException``."""
    for attribute in schema.attributes:
        if attribute.name in updated:
            raise invalid_value(
                f"Cannot update attribute {attribute.name}. This attribute is part of the key"
            )

"""Plans the write of an INSERT, UPDATE or DELETE on its table.

UPDATE and DELETE need equality on each key attribute. The remaining part of WHERE becomes the
write's condition.

Source: Developer Guide, "PartiQL insert/update/delete statements for DynamoDB"; messages: DynamoDB
Local 3.3.
"""

from __future__ import annotations

from collections.abc import Callable

from dynactor.model.definitions.index import check_size_with_entries
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ValidationException
from dynactor.model.expressions import condition
from dynactor.model.expressions.condition import Attribute, Condition, Node
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.key_conditions.key_condition import SortCondition, conjuncts
from dynactor.model.keys.key import KeySchema
from dynactor.model.partiql.key_terms import NO_KEY, check_type, equality, one_value
from dynactor.model.partiql.statement import (
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    UpdateStatement,
)
from dynactor.model.tables.key_rules import (
    check_index_key_types,
    check_index_keys,
    check_item_key,
    check_key,
    check_no_key_updated,
)
from dynactor.model.values import item as items
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item
from dynactor.model.writes import write
from dynactor.model.writes.transaction import Check


def extract_key(
    statement: InsertStatement | UpdateStatement | DeleteStatement | ExistsStatement,
    schema: KeySchema,
) -> Item:
    """The key of a statement's item, maybe empty or too long; raises ``ValidationException``."""
    match statement:
        case InsertStatement(item=item):
            for attribute in schema.attributes:
                if attribute.name not in item:
                    raise ValidationException(
                        f"Key attribute should be present in the item: Key {attribute.name}"
                    )
                check_type(attribute, item[attribute.name])
            return schema.extract_key(item)
        case UpdateStatement(where=where):
            return _key(where, schema)[0]
        case DeleteStatement(where=where, returning=returning):
            key, _ = _key(where, schema)
            if returning not in (None, "ALL OLD"):
                raise ValidationException(
                    f"Invalid returning clause: RETURNING {returning} *. Only RETURNING ALL OLD * "
                    "is allowed in DELETE statements."
                )
            return key
        case ExistsStatement(select=select):
            if select.where is None:
                raise ValidationException(NO_KEY)
            return _key(select.where, schema, one_value)[0]


def has_key(
    statement: UpdateStatement | DeleteStatement | ExistsStatement, schema: KeySchema
) -> bool:
    """Whether a statement gives the key of one item of this table."""
    try:
        extract_key(statement, schema)
    except ValidationException:
        return False
    return True


def plan_put(insert: InsertStatement, table: TableDefinition) -> write.Put:
    """The put of an INSERT, on condition that no item exists; raises ``ValidationException``."""
    schema = table.key_schema
    extract_key(insert, schema)
    size_bytes = items.size_bytes(insert.item)
    items.check_size(size_bytes)
    check_item_key(schema, insert.item)
    check_index_keys(table, insert.item)
    check_size_with_entries(table.local_indexes, schema, insert.item, size_bytes)
    absent = condition.NotExists(_partition_attribute(schema))
    return write.Put(insert.item, size_bytes, Condition(absent))


def plan_update(
    update: UpdateStatement, table: TableDefinition, *, return_item_on_failure: bool
) -> write.Update:
    """The update of an UPDATE, if the item exists; raises ``ValidationException``."""
    schema = table.key_schema
    key, left = _key(update.where, schema)
    check_key(schema, key)
    check_no_key_updated(schema, update.update.attributes)
    check_index_key_types(table, update.update.static_types)
    check_scalar_keys(table, update.nested)
    there = condition.Exists(_partition_attribute(schema))
    return write.Update(
        key,
        update.update,
        Condition(condition.And((there, *left))),
        update.return_values,
        return_item_on_failure,
    )


def plan_delete(
    delete: DeleteStatement, table: TableDefinition, *, return_item_on_failure: bool
) -> write.Delete:
    """The delete of a DELETE, even of a missing item; raises ``ValidationException``."""
    schema = table.key_schema
    extract_key(delete, schema)
    key, left = _key(delete.where, schema)
    check_key(schema, key)
    check_scalar_keys(table, delete.nested)
    absent = condition.NotExists(_partition_attribute(schema))
    wanted = Condition(condition.Or((absent, condition.And(tuple(left))))) if left else None
    return_values: write.ReturnValues = "ALL_OLD" if delete.returning else "NONE"
    return write.Delete(key, wanted, return_values, return_item_on_failure)


def is_check(exists: ExistsStatement, table: TableDefinition) -> bool:
    """Whether an EXISTS gives the table's whole key and another condition."""
    select = exists.select
    if select.index is not None or select.where is None:
        return False
    key_names = {attribute.name for attribute in table.key_schema.attributes}
    terms = [one_value(node) for node in conjuncts(select.where.root)]
    named = {term.name for term in terms if term is not None} & key_names
    return named == key_names and len(terms) > len(named)


def plan_check(
    exists: ExistsStatement, table: TableDefinition, *, return_item_on_failure: bool
) -> Check:
    """The check of an EXISTS: the item exists, and its WHERE holds.

    Raises ``ValidationException`` if the key does not fit the table.
    """
    select, schema = exists.select, table.key_schema
    assert select.where is not None, "see is_check"
    key, left = _key(select.where, schema, one_value)
    check_key(schema, key)
    check_scalar_keys(table, select.nested)
    there = condition.Exists(_partition_attribute(schema))
    return Check(key, Condition(condition.And((there, *left))), return_item_on_failure)


def _partition_attribute(schema: KeySchema) -> Attribute:
    return Attribute(schema.partition[0].name)


def _key(
    where: Condition,
    schema: KeySchema,
    key_term: Callable[[Node], SortCondition | None] = equality,
) -> tuple[Item, list[Node]]:
    """The key in a write's WHERE, and the other conditions."""
    given: dict[str, list[AttributeValue]] = {attribute.name: [] for attribute in schema.attributes}
    left: list[Node] = []
    for node in conjuncts(where.root):
        named = key_term(node)
        if named is None or named.name not in given:
            left.append(node)
        elif named.values[0] not in given[named.name]:
            given[named.name].append(named.values[0])
    for name, values in given.items():
        if not values:
            raise ValidationException(NO_KEY)
        if len(values) > 1:
            raise ValidationException(
                f"Multiple conditions on same key {name}. "
                "Only single item Update/Insert/Delete are supported"
            )
    key = {name: values[0] for name, values in given.items()}
    for attribute in schema.attributes:
        check_type(attribute, key[attribute.name])
    return key, left

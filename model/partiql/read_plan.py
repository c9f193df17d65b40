"""Plans how a SELECT reads its table.

A WHERE that fixes the partition key becomes a Query for each value of the key. Any other WHERE
becomes a Scan. The conditions that key ranges don't express remain as a filter.

Sources: Developer Guide, "PartiQL select statements for DynamoDB" (the WHERE clauses that avoid a
scan, at most 50 partition keys in IN); messages: DynamoDB Local 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from dynactor.model.errors import ValidationException
from dynactor.model.expressions import condition
from dynactor.model.expressions.condition import Attribute, Condition, Constant, Node
from dynactor.model.expressions.key_condition import SortCondition, conjuncts, key_condition
from dynactor.model.keys import key_range
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.keys.key_range import KeyRange
from dynactor.model.limits import PARTIQL_IN_PARTITION_KEYS
from dynactor.model.partiql.key_terms import check_type, equality, term_of
from dynactor.model.partiql.statement import Select
from dynactor.model.values import attribute_value
from dynactor.model.values.attribute_value import AttributeValue


class ReadPlan(Struct, frozen=True):
    """The ranges to read in order, each as a Query, or a Scan of everything.

    ``is_keyed``: conditions outside any OR fix the partition key, by equality or IN. Conditions
    within an OR also give ranges, but do not set ``is_keyed``.
    """

    ranges: tuple[KeyRange, ...]
    filter: Condition | None
    is_scan: bool = False
    reverse: bool = False
    is_keyed: bool = False


def read_plan(select: Select, schema: KeySchema) -> ReadPlan:
    """The plan of a SELECT from a table or index with this key.

    The partition key and the sort key have one attribute each: a SELECT from any other index is
    refused before.

    Raises:
        ValidationException: a key attribute is compared with a value of another type or an invalid
            key value, or ORDER BY is not possible.
    """
    nodes = [] if select.where is None else conjuncts(select.where.root)
    _check_filter_types([node for node in nodes if isinstance(node, condition.Or)], schema)
    partitions = _partitions(nodes, schema)
    _check_may_be_ordered(select, is_scan=partitions is None)
    if partitions is None:
        _check_filter_types(nodes, schema)
        return ReadPlan((key_range.WHOLE,), select.where, is_scan=True)
    terms = _sort_terms(nodes, schema)
    _check_order(select, schema)
    descending = {order.name: order.is_descending for order in select.order}
    partitions.sort(
        key=attribute_value.order_key, reverse=_is_descending(schema.partition, descending)
    )
    used = [node for node, _ in terms]
    left = [
        node for node in nodes if node not in used and not _is_implied_by(partitions, node, schema)
    ]
    _check_filter_types(left, schema)
    return ReadPlan(
        tuple(_range(value, [term for _, term in terms], schema) for value in partitions),
        _joined(left, select.where),
        reverse=_is_descending(schema.sort, descending),
        is_keyed=_is_keyed(nodes, schema),
    )


def partition_values(select: Select, schema: KeySchema) -> list[AttributeValue] | None:
    """The partition keys that a SELECT reads; None if it reads all.

    Raises:
        ValidationException: see ``read_plan``.
    """
    nodes = [] if select.where is None else conjuncts(select.where.root)
    return _partitions(nodes, schema)


def is_of_one_item(select: Select, schema: KeySchema) -> bool:
    """Whether a SELECT gives the table's whole key by equality, and no other condition."""
    if select.index is not None or select.where is None:
        return False
    given: dict[str, AttributeValue] = {}
    for node in conjuncts(select.where.root):
        named = equality(node)
        # The same condition may be repeated.
        if named is None or given.setdefault(named.name, named.values[0]) != named.values[0]:
            return False
    return given.keys() == {attribute.name for attribute in schema.attributes}


def _partitions(nodes: Sequence[Node], schema: KeySchema) -> list[AttributeValue] | None:
    """The partition keys that a WHERE allows; None if it does not restrict them."""
    (attribute,) = schema.partition
    values = _values(condition.And(tuple(nodes)), attribute.name)
    if values is None:
        return None
    for value in values:
        check_type(attribute, value)
    for node in nodes:
        if (
            isinstance(node, condition.In)
            and node.operand == Attribute(attribute.name)
            and len(node.choices) > PARTIQL_IN_PARTITION_KEYS
        ):
            raise ValidationException(
                "The IN operator is provided with too many operands; "
                f"number of operands: {len(node.choices)}"
            )
    return values


def _is_keyed(nodes: Sequence[Node], schema: KeySchema) -> bool:
    """Whether conditions outside any OR fix the partition key."""
    name = schema.partition[0].name
    return any(
        _values(node, name) is not None for node in nodes if not isinstance(node, condition.Or)
    )


def _check_filter_types(nodes: Sequence[Node], schema: KeySchema) -> None:
    """Refuse comparisons of key attributes with values of another type, anywhere in a filter.

    Raises:
        ValidationException: the filter has such a comparison.
    """
    types = {attribute.name: attribute.type for attribute in schema.attributes}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        match node:
            case condition.And(conditions) | condition.Or(conditions):
                waiting += conditions
            case condition.Not(negated):
                waiting.append(negated)
            case _:
                for name, value in _compared(node):
                    if name in types and types[name] not in value:
                        raise ValidationException(
                            "One or more parameter values were invalid: Condition parameter "
                            "type does not match schema type"
                        )


def _compared(node: Node) -> list[tuple[str, AttributeValue]]:
    """The attributes that a condition compares, each with the values in comparisons."""
    match node:
        case condition.NotEqual(Attribute(name), Constant(value)) | condition.NotEqual(
            Constant(value), Attribute(name)
        ):
            return [(name, value)]
        case condition.In(Attribute(name), choices):
            return [(name, one.value) for one in choices if isinstance(one, Constant)]
        case condition.Contains(Attribute(name), Constant(part)):
            return [(name, part)]
        case _:
            term = term_of(node)
            return [(term.name, value) for value in term.values] if term else []


def _values(node: Node, name: str) -> list[AttributeValue] | None:
    """The only values of an attribute for which a condition can hold; None if not restricted."""
    if isinstance(node, condition.And):
        found = [values for one in node.conditions if (values := _values(one, name)) is not None]
        if not found:
            return None
        common = [value for value in found[0] if all(value in others for others in found[1:])]
        # If the conditions contradict each other, the values of the first one are read, and the
        # filter rejects all items.
        return common or found[0]
    if isinstance(node, condition.Or):
        united: list[AttributeValue] = []
        for one in node.conditions:
            values = _values(one, name)
            if values is None:
                return None
            united += [value for value in values if value not in united]
        return united
    if isinstance(node, condition.In) and node.operand == Attribute(name):
        constants = [choice.value for choice in node.choices if isinstance(choice, Constant)]
        if len(constants) < len(node.choices):
            return None
        return [value for at, value in enumerate(constants) if value not in constants[:at]]
    named = equality(node)
    return list(named.values) if named and named.name == name else None


def _is_implied_by(partitions: list[AttributeValue], node: Node, schema: KeySchema) -> bool:
    """Whether a condition holds in all these partitions, so the filter can omit it."""
    if not isinstance(node, condition.Equal | condition.In):
        return False
    values = _values(node, schema.partition[0].name)
    return values is not None and all(partition in values for partition in partitions)


def _sort_terms(nodes: Sequence[Node], schema: KeySchema) -> list[tuple[Node, SortCondition]]:
    """The conditions on the sort key, which narrow the range in each partition."""
    found = []
    for attribute in schema.sort:
        for node in nodes:
            term = term_of(node)
            if term is not None and term.name == attribute.name:
                for value in term.values:
                    check_type(attribute, value)
                found.append((node, term))
    return found


def _range(partition: AttributeValue, terms: list[SortCondition], schema: KeySchema) -> KeyRange:
    """The range in one partition where all terms hold."""
    name = schema.partition[0].name
    of_partition = {name: SortCondition(name, "=", (partition,))}
    start, end = key_range.of_key_condition(key_condition(of_partition, schema))
    assert end is not None
    for term in terms:
        by_name = of_partition | {term.name: term}
        one = key_range.of_key_condition(key_condition(by_name, schema))
        assert one.end is not None
        start, end = max(start, one.start), min(end, one.end)
    return KeyRange(start, max(start, end))


def _joined(nodes: list[Node], where: Condition | None) -> Condition | None:
    if not nodes:
        return None
    assert where is not None
    root = nodes[0] if len(nodes) == 1 else condition.And(tuple(nodes))
    # ``attributes`` may harmlessly name key attributes that the filter no longer reads,
    # because every item has them.
    return Condition(root, where.attributes)


def _check_may_be_ordered(select: Select, *, is_scan: bool) -> None:
    if not select.order:
        return
    if select.where is None:
        raise ValidationException(
            "Must have WHERE clause in the statement when using ORDER BY clause."
        )
    if is_scan:
        raise ValidationException(
            "Must have at least one non-optional hash key condition in WHERE clause when using "
            "ORDER BY clause."
        )


def _check_order(select: Select, schema: KeySchema) -> None:
    names = [attribute.name for attribute in schema.attributes]
    for order in select.order:
        if order.fault is not None:
            raise ValidationException(order.fault)
        if order.name not in names:
            raise ValidationException(
                f"Variable reference {order.name} in ORDER BY clause must be part of the "
                "primary key"
            )


def _is_descending(attributes: Sequence[KeyAttribute], descending: dict[str, bool]) -> bool:
    """Whether ORDER BY is descending for the first of these attributes that it contains."""
    return next((descending[one.name] for one in attributes if one.name in descending), False)

"""Plans how a SELECT reads its table.

A WHERE that fixes the partition key becomes one or more reads. IN and OR on key attributes give a
read for each value or branch. Any other WHERE becomes a Scan. The conditions that key ranges don't
express remain as a filter.

Sources: Developer Guide, "PartiQL select statements for DynamoDB" (the WHERE clauses that avoid a
scan); reads and their limits: measured on AWS, 2026; messages: AWS and DynamoDB Local 3.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import Final, NamedTuple

from msgspec import Struct

from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.expressions import condition
from dynactor.model.expressions.condition import Attribute, Condition, Constant, Node
from dynactor.model.key_conditions import key_range
from dynactor.model.key_conditions.key_condition import SortCondition, conjuncts, key_condition
from dynactor.model.key_conditions.key_range import KeyRange
from dynactor.model.keys.key import KeySchema
from dynactor.model.limits import PARTIQL_READS
from dynactor.model.partiql.key_terms import check_type, equality, one_value, sort_term
from dynactor.model.partiql.statement import SelectStatement
from dynactor.model.values import attribute_value
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item


class ReadPlan(Struct, frozen=True):
    """The ranges to read in order, each as a Query, or a Scan of everything.

    ``has_single_items``: no range has more than one item of a table. ``filter_names`` are the
    attributes that an index must hold for the filter. A Scan, and an OR that was split into reads,
    may name others, which count as missing.
    """

    ranges: tuple[KeyRange, ...]
    filter: Condition | None
    is_scan: bool = False
    reverse: bool = False
    has_single_items: bool = False
    filter_names: frozenset[str] = frozenset()


class _PartitionRead(NamedTuple):
    """A read of one partition, narrowed by conditions on the sort key; None: any partition."""

    partition: AttributeValue | None = None
    terms: tuple[SortCondition, ...] = ()


# The read for a condition without key attributes.
_ANY: Final = _PartitionRead()


def read_plan(select: SelectStatement, schema: KeySchema) -> ReadPlan:
    """The plan of a SELECT from a table or index with this key.

    The partition key and the sort key have one attribute each: a SELECT from any other index is
    refused before. Raises ``ValidationException`` if a key attribute is compared with an invalid
    key value, the reads are too many or overlap, or ORDER BY is not possible.
    """
    nodes = [] if select.where is None else conjuncts(select.where.root)
    _check_filter_types([node for node in nodes if isinstance(node, condition.Or)], schema)
    partitions = _partitions(nodes, schema)
    _check_may_be_ordered(select, partitions, schema)
    if partitions is None:
        _check_filter_types(nodes, schema)
        return ReadPlan((key_range.WHOLE,), select.where, is_scan=True)
    reads = _reads_of_all(nodes, schema)
    used = [node for node in nodes if _is_key_condition(node, schema)]
    _check_sort_types(used, schema)
    _check_order(select, schema)
    left = [node for node in nodes if node not in used]
    _check_filter_types(left, schema)
    if not reads:
        # The conditions contradict each other. The values of the first one are read, and the filter
        # rejects all items.
        reads = [_PartitionRead(value) for value in partitions]
        left = nodes
    reverse = _is_reversed(select, schema)
    return ReadPlan(
        _ranges(reads, select, schema, reverse=reverse),
        _joined(left, select.where),
        reverse=reverse,
        has_single_items=all(_is_of_one_item(read, schema) for read in reads),
        filter_names=condition.read_attributes(
            tuple(node for node in left if _reads(node, schema) == [_ANY])
        ),
    )


def partition_values(select: SelectStatement, schema: KeySchema) -> list[AttributeValue] | None:
    """The partition keys that a SELECT reads; None if it reads all. Raises as ``read_plan``."""
    nodes = [] if select.where is None else conjuncts(select.where.root)
    return _partitions(nodes, schema)


def key_of_one_item(select: SelectStatement, schema: KeySchema) -> Item | None:
    """The key in a SELECT of one item; None if it has not the whole key or another condition."""
    if select.index is not None or select.where is None:
        return None
    given: Item = {}
    for node in conjuncts(select.where.root):
        named = one_value(node)
        # The same condition may be repeated.
        if named is None or given.setdefault(named.name, named.values[0]) != named.values[0]:
            return None
    return given if given.keys() == {attribute.name for attribute in schema.attributes} else None


def _partitions(nodes: Sequence[Node], schema: KeySchema) -> list[AttributeValue] | None:
    """The partition keys that a WHERE allows; None if it does not restrict them."""
    (attribute,) = schema.partition
    values = _values(condition.And(tuple(nodes)), attribute.name)
    for value in values or ():
        check_type(attribute, value)
    return values


def _reads(node: Node, schema: KeySchema) -> list[_PartitionRead]:
    """The reads that find all items of a condition; raises ``ValidationException`` if too many."""
    match node:
        case condition.And(conditions):
            return _reads_of_all(conditions, schema)
        case condition.Or(conditions):
            branches = [_reads(one, schema) for one in conditions]
            if all(reads == [_ANY] for reads in branches):
                return [_ANY]
            return _bounded(read for reads in branches for read in reads)
        case condition.In(Attribute(name), choices):
            values = [choice.value for choice in choices if isinstance(choice, Constant)]
            if len(values) < len(choices):
                return [_ANY]
            terms = [SortCondition(name, "=", (value,)) for value in values]
        case _:
            term = sort_term(node)
            terms = [] if term is None else [term]
    partition_name = schema.partition[0].name
    sort_names = [attribute.name for attribute in schema.sort]
    if terms and terms[0].name == partition_name and terms[0].operator == "=":
        return _bounded(_PartitionRead(term.values[0]) for term in terms)
    if terms and terms[0].name in sort_names:
        return _bounded(_PartitionRead(None, (term,)) for term in terms)
    return [_ANY]


def _reads_of_all(nodes: Iterable[Node], schema: KeySchema) -> list[_PartitionRead]:
    found = [_ANY]
    for node in nodes:
        pairs = product(found, _reads(node, schema))
        found = _bounded(
            _PartitionRead(one.partition or other.partition, one.terms + other.terms)
            for one, other in pairs
            if None in (one.partition, other.partition) or one.partition == other.partition
        )
    return found


def _bounded(reads: Iterable[_PartitionRead]) -> list[_PartitionRead]:
    found = list(reads)
    if len(found) > PARTIQL_READS:
        raise ValidationException("Too many decomposed read operations for a given query.")
    return found


def _is_key_condition(node: Node, schema: KeySchema) -> bool:
    """Whether all items of the reads for a condition meet it, so the filter can omit it."""
    return not isinstance(node, condition.Or) and _reads(node, schema) != [_ANY]


def _is_of_one_item(read: _PartitionRead, schema: KeySchema) -> bool:
    return not schema.sort or any(term.operator == "=" for term in read.terms)


def _check_sort_types(nodes: Iterable[Node], schema: KeySchema) -> None:
    for attribute in schema.sort:
        for node in nodes:
            for read in _reads(node, schema):
                for term in read.terms:
                    for value in term.values:
                        check_type(attribute, value)


def _ranges(
    reads: list[_PartitionRead], select: SelectStatement, schema: KeySchema, *, reverse: bool
) -> tuple[KeyRange, ...]:
    """The ranges of reads in the order of ORDER BY; overlaps raise ``ValidationException``."""
    found = [(_partition_order(read), _range(read, schema)) for read in reads]
    occupied = sorted(one for _, one in found if one.start != one.end)
    if any(one.end is None or one.end > other.start for one, other in pairwise(occupied)):
        raise ValidationException(
            "Overlapping conditions with range keys are not supported in where clause"
        )
    found.sort(key=lambda one: one[1].start, reverse=reverse)
    name = schema.partition[0].name
    found.sort(
        key=lambda one: one[0],
        reverse=any(order.is_descending for order in select.order if order.name == name),
    )
    return tuple(one for _, one in found)


def _partition_order(read: _PartitionRead) -> bytes:
    """Bytes that order reads by their partition keys."""
    assert read.partition is not None
    return attribute_value.order_key(read.partition)


def _check_filter_types(nodes: Sequence[Node], schema: KeySchema) -> None:
    """Refuse comparisons of keys with other types in a filter; raises ``ValidationException``."""
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
                        raise invalid_value("Condition parameter type does not match schema type")


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
            term = sort_term(node)
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


def _range(read: _PartitionRead, schema: KeySchema) -> KeyRange:
    """The range in one partition where all terms hold."""
    assert read.partition is not None
    name = schema.partition[0].name
    partition_conditions = {name: SortCondition(name, "=", (read.partition,))}
    start, end = key_range.selected_range(key_condition(partition_conditions, schema))
    assert end is not None
    for term in read.terms:
        by_name = partition_conditions | {term.name: term}
        one = key_range.selected_range(key_condition(by_name, schema))
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


def _check_may_be_ordered(
    select: SelectStatement, partitions: list[AttributeValue] | None, schema: KeySchema
) -> None:
    if not select.order:
        return
    if select.where is None:
        raise ValidationException(
            "Must have WHERE clause in the statement when using ORDER BY clause."
        )
    if partitions is None:
        raise ValidationException(
            "Must have at least one non-optional hash key condition in WHERE clause when using "
            "ORDER BY clause."
        )
    names = [order.name for order in select.order]
    if len(partitions) > 1 and schema.partition[0].name not in names:
        raise ValidationException(
            "Must have hash key in ORDER BY clause when more than one hash key condition "
            "specified in WHERE clause."
        )


def _check_order(select: SelectStatement, schema: KeySchema) -> None:
    names = [attribute.name for attribute in schema.attributes]
    for order in select.order:
        if order.fault is not None:
            raise ValidationException(order.fault)
        if order.name not in names:
            raise ValidationException(
                f"Variable reference {order.name} in ORDER BY clause must be part of the "
                "primary key"
            )


def _is_reversed(select: SelectStatement, schema: KeySchema) -> bool:
    """Whether sort keys descend: also with an ORDER BY of the partition key alone, as on AWS."""
    sort_names = [attribute.name for attribute in schema.sort]
    sort_directions = [order.is_descending for order in select.order if order.name in sort_names]
    return sort_directions[-1] if sort_directions else bool(select.order)

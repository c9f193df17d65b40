"""Common parts of Query and Scan: the contents of a page and its start key.

Messages: measured on AWS by the authors of dynalite, and DynamoDB Local.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import json

from dynactor.api.answers.item_answers import array_member, capacity_member, joined
from dynactor.model.capacity import ReturnConsumedCapacity
from dynactor.model.definitions import index as indexes
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.projection import Projector
from dynactor.model.keys import key as keys
from dynactor.model.reads.page import Page, PageRules
from dynactor.model.tables.key_rules import NO_MATCH, check_key
from dynactor.model.values import attribute_value
from dynactor.model.values.item import Item

_BAD_START = "The provided starting key is invalid"


class PageRequest(Protocol):
    """The members that Query and Scan have."""

    @property
    def Select(self) -> str | None: ...  # noqa: N802, D102 - the wire's name says it
    @property
    def AttributesToGet(self) -> list[str] | None: ...  # noqa: N802, D102
    @property
    def ProjectionExpression(self) -> str | None: ...  # noqa: N802, D102
    @property
    def IndexName(self) -> str | None: ...  # noqa: N802, D102
    @property
    def Limit(self) -> int | None: ...  # noqa: N802, D102
    @property
    def ExclusiveStartKey(self) -> Item | None: ...  # noqa: N802, D102
    @property
    def ReturnConsumedCapacity(self) -> ReturnConsumedCapacity | None: ...  # noqa: N802, D102


def check_select(request: PageRequest) -> None:
    """Check that Select agrees with the other members; raises ``ValidationException``."""
    select = request.Select
    if request.AttributesToGet is not None:
        named = "AttributesToGet"
    elif request.ProjectionExpression is not None:
        named = "ProjectionExpression"
    else:
        named = None
    if select == "ALL_PROJECTED_ATTRIBUTES" and request.IndexName is None:
        raise ValidationException(
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
        )
    if select == "SPECIFIC_ATTRIBUTES" and named is None:
        raise ValidationException(
            "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
            "SPECIFIC_ATTRIBUTES"
        )
    if named is not None and select not in (None, "SPECIFIC_ATTRIBUTES"):
        what = "only the Count" if select == "COUNT" else select
        raise ValidationException(f"Cannot specify the {named} when choosing to get {what}")


def check_start_key_values(start_key: Item | None) -> None:
    """Check the values of a start key from a request; raises ``ValidationException``."""
    for value in (start_key or {}).values():
        try:
            attribute_value.check(value)
        except ValidationException as error:
            # DynamoDB puts this prefix before some of its messages only.
            if any(words in error.message for words in _BARE):
                raise
            raise ValidationException(f"{_BAD_START}: {error.message}") from None


_BARE = (
    "contains duplicates",
    "number set",
    "numeric value",
    "significant digits",
    "number with magnitude",
)


def named_index(
    table: TableDefinition, name: str | None, *, consistent: bool, is_statement: bool = False
) -> IndexDefinition | None:
    """The index a request names; None for the table itself.

    ``is_statement``: the messages are PartiQL's, which don't name a missing index (recorded from
    AWS). Raises ``ValidationException`` if the index is missing, or can't be read yet or
    consistently.
    """
    if name is None:
        return None
    index = table.local_index(name)
    if index is not None:
        return index
    global_index = table.global_index(name)
    if global_index is None or global_index.status == "DELETING":
        which = "" if is_statement else f": {name}"
        raise ValidationException(f"The table does not have the specified index{which}")
    if global_index.backfilling is not None:
        raise ValidationException(f"Cannot read from backfilling global secondary index: {name}")
    if consistent:
        raise ValidationException(
            "Strongly consistent read is not supported on Global Secondary Indexes"
            if is_statement
            else "Consistent reads are not supported on global secondary indexes"
        )
    return global_index.definition


def page_rules(
    request: PageRequest,
    table: TableDefinition,
    index: IndexDefinition | None,
    condition: Condition | None,
    projector: Projector | None,
    *,
    filter_names: frozenset[str] = frozenset(),
) -> PageRules:
    """The rules for the contents of a page.

    Attributes that a local index does not hold are fetched from the table if requested by name or
    by ALL_ATTRIBUTES (S13, S43). A global index can't fetch them (S82). An index must hold
    ``filter_names``: the names in a Query's filter. A Scan's filter may name any attribute;
    attributes that the index does not hold count as missing (seen on AWS in 2026). Raises
    ``ValidationException`` if the index does not hold a needed attribute.
    """
    fetch = False
    if index is not None and index.projection.type != "ALL":
        held = indexes.projected_names(index, table.key_schema)
        fetch = request.Select == "ALL_ATTRIBUTES" or (
            projector is not None and not projector.names <= held
        )
        is_global = table.global_index(index.name) is not None
        sees_index_alone = is_global or not fetch
        if sees_index_alone and not filter_names <= held:
            raise invalid_value(
                f"Secondary index {index.name} does not project one or more filter attributes: "
                f"{_listed(filter_names - held)}"
            )
        if is_global and request.Select == "ALL_ATTRIBUTES":
            raise invalid_value(
                "Select type ALL_ATTRIBUTES is not supported for global secondary index "
                f"{index.name} because its projection type is not ALL"
            )
        if is_global and fetch:
            assert projector is not None
            raise invalid_value(
                f"Global secondary index {index.name} does not project "
                f"{_listed(projector.names - held)}"
            )
    return PageRules(
        limit=request.Limit,
        filter=condition,
        projector=projector,
        count_only=request.Select == "COUNT",
        fetch=fetch,
    )


def _listed(names: frozenset[str]) -> str:
    return f"[{', '.join(sorted(names))}]"


def scan_start(table: TableDefinition, index: IndexDefinition | None, start_key: Item) -> bytes:
    """The position of a Scan's start key; raises ``ValidationException`` with a Scan's messages."""
    if index is None:
        try:
            check_key(table.key_schema, start_key)
        except ValidationException as error:
            raise ValidationException(f"{_BAD_START}: {error.message}") from None
        return keys.encode(table.key_schema, start_key)
    # The error of an index key with a wrong type comes before the error of missing names.
    for attribute in index.key_schema.attributes:
        if attribute.type not in start_key.get(attribute.name, {attribute.type: None}):
            raise ValidationException(NO_MATCH)
    if start_key.keys() != _start_names(table, index):
        raise ValidationException(f"{_BAD_START}: {NO_MATCH}")
    return query_start(table, index, start_key)


def query_start(table: TableDefinition, index: IndexDefinition | None, start_key: Item) -> bytes:
    """The position of a Query's start key.

    Raises ``ValidationException``.
    """
    if start_key.keys() != _start_names(table, index):
        raise ValidationException(_BAD_START)
    queried = index.key_schema if index else table.key_schema
    check_key(queried, queried.extract_key(start_key))
    try:
        check_key(table.key_schema, table.key_schema.extract_key(start_key))
    except ValidationException as error:
        raise ValidationException(f"{_BAD_START}: {error.message}") from None
    return start_position(table, index, start_key)


def has_one_item(table: TableDefinition, index: IndexDefinition | None) -> bool:
    """Whether each partition key of the table or index has at most one item."""
    return index is None and not table.key_schema.sort


def _start_names(table: TableDefinition, index: IndexDefinition | None) -> set[str]:
    queried = index.key_schema.attributes if index else ()
    return {attribute.name for attribute in queried + table.key_schema.attributes}


def start_position(table: TableDefinition, index: IndexDefinition | None, start_key: Item) -> bytes:
    """The position of a checked start key."""
    if index is None:
        return keys.encode(table.key_schema, start_key)
    queried = index.key_schema
    if table.global_index(index.name) is None:
        return keys.encode(queried, start_key) + keys.encode_sort(table.key_schema, start_key)
    return keys.encode(queried, start_key) + b"".join(
        keys.encode_value(start_key[attribute.name]) for attribute in table.key_schema.attributes
    )


def page_answer(request: PageRequest, table_name: str, page: Page) -> bytes:
    """The JSON answer of a Query or Scan."""
    members = []
    if request.Select != "COUNT":
        members.append(array_member(b"Items", page.items))
    members.append(b'"Count":%d' % page.count)
    members.append(b'"ScannedCount":%d' % page.scanned_count)
    if page.last is not None:
        members.append(b'"LastEvaluatedKey":' + json.encode(page.last))
    members += capacity_member(table_name, page.receipt, request.ReturnConsumedCapacity)
    return joined(members)

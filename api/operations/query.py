"""Query."""

from __future__ import annotations

from collections.abc import Awaitable

from msgspec import structs

from dynactor.actors.table.pages import ReadRange, begin_page, read_page
from dynactor.actors.table.table import Table
from dynactor.api.access import data_asks
from dynactor.api.execution.operation import DATA_FAULTS, Effect, Location, Operation
from dynactor.api.execution.page_requests import (
    check_select,
    check_start_key_values,
    has_one_item,
    named_index,
    page_answer,
    page_rules,
    query_start,
    start_position,
)
from dynactor.api.requests import as_of
from dynactor.api.requests.call import Call
from dynactor.api.requests.expression_members import (
    check_together,
    read_filter,
    read_key_terms,
    read_legacy_filter,
    read_legacy_projector,
    read_placeholders,
    read_projector,
)
from dynactor.api.requests.inputs import QueryInput
from dynactor.api.requests.table_arn import table_name
from dynactor.api.requests.validation_errors import NEWER_READS, detected
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import DynamoDBError, ValidationException
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.key_conditions import fast_range, key_range
from dynactor.model.key_conditions.key_condition import KeyCondition, KeyTerms
from dynactor.model.keys.key import KeySchema
from dynactor.model.reads.page import Page, PageRules
from dynactor.model.tables.key_rules import check_condition_size
from dynactor.model.values import attribute_value
from dynactor.model.values.item import Item


def handle(call: Call[QueryInput]) -> bytes | Awaitable[bytes]:
    """One page of the items of one partition key, in the order of the sort key.

    A short page is answered at once, without an awaitable.
    """
    if call.as_of_epoch_seconds is not None:
        return _read_past(call)
    request = call.request
    table = call.database.usable_table(request.TableName)
    read = None if table is None else _fast_checked(request, table.definition)
    if table is None or read is None:
        table, read = _checked(call)
    if call.paid is not None:
        return _answer_later(call, table, read, read_page(table, read))
    page = begin_page(table, read)
    if isinstance(page, Page):
        return _answer(request, table, read, page)
    return _answer_later(call, table, read, page)


async def _read_past(call: Call[QueryInput]) -> bytes:
    table, read = _checked(call)
    return await _answer_later(call, table, read, as_of.read_page(call, table, read))


async def _answer_later(
    call: Call[QueryInput], table: Table, read: ReadRange, page: Awaitable[Page]
) -> bytes:
    return _answer(call.request, table, read, await call.noting(table.definition, page))


def _answer(request: QueryInput, table: Table, read: ReadRange, page: Page) -> bytes:
    definition = table.definition
    if page.last is not None and has_one_item(definition, read.index):
        # No item follows, and a request with this start key would be refused.
        page = structs.replace(page, last=None)
    return page_answer(request, definition.name, page)


def _fast_checked(request: QueryInput, table: TableDefinition) -> ReadRange | None:
    """The checked read of a typical request, without filter and projection; None for others."""
    if (
        request.KeyConditionExpression is None
        or request.ProjectionExpression is not None
        or request.FilterExpression is not None
        or request.Select is not None
        or request.AttributesToGet is not None
        or request.KeyConditions is not None
        or request.QueryFilter is not None
        or request.ConditionalOperator is not None
    ):
        return None
    index = None
    if request.IndexName is not None:
        try:
            index = named_index(table, request.IndexName, consistent=request.ConsistentRead is True)
        except ValidationException:
            return None
    wanted = fast_range.partition_range(
        request.KeyConditionExpression,
        request.ExpressionAttributeNames,
        request.ExpressionAttributeValues,
        table.key_schema if index is None else index.key_schema,
    )
    if wanted is None:
        return None
    after = None
    if request.ExclusiveStartKey is not None:
        if has_one_item(table, index):
            return None
        after = _fast_start(table, index, request.ExclusiveStartKey)
        if after is None or not key_range.contains(wanted, after):
            return None
    return ReadRange(
        wanted,
        PageRules(limit=request.Limit),
        index,
        after,
        request.ScanIndexForward is False,
        request.ConsistentRead is True,
    )


def _fast_start(
    table: TableDefinition, index: IndexDefinition | None, start_key: Item
) -> bytes | None:
    try:
        check_start_key_values(start_key)
        return query_start(table, index, start_key)
    except DynamoDBError:
        return None


def _checked(call: Call[QueryInput]) -> tuple[Table, ReadRange]:
    """Check any request, in DynamoDB's order."""
    request = call.request
    name = table_name(request.TableName)
    check_together(request)
    legacy_filter = read_legacy_filter(request.QueryFilter, request.ConditionalOperator)
    read_legacy_projector(request)
    check_start_key_values(request.ExclusiveStartKey)
    if request.KeyConditions is None and request.KeyConditionExpression is None:
        raise ValidationException(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in "
            "the request."
        )
    placeholders = read_placeholders(request)
    terms = read_key_terms(request.KeyConditionExpression, request.KeyConditions, placeholders)
    condition = read_filter(request.FilterExpression, legacy_filter, placeholders)
    projector = read_projector(request, placeholders)
    placeholders.check_all_used()
    if isinstance(terms, KeyTerms):
        # Errors that don't need the table come before the look-up of the table.
        terms.by_name()
    _check_select(request)
    table = call.database.table(name)
    definition = table.definition
    index = named_index(definition, request.IndexName, consistent=request.ConsistentRead is True)
    schema = index.key_schema if index else definition.key_schema
    start_key = request.ExclusiveStartKey
    after = None if start_key is None else query_start(definition, index, start_key)
    key_condition = (
        terms.on(schema, is_of_index=index is not None)
        if isinstance(terms, KeyTerms)
        else terms.on(schema)
    )
    check_condition_size(key_condition)
    wanted = key_range.selected_range(key_condition)
    if start_key is not None:
        _check_start(definition, index, key_condition, start_key)
    if condition is not None:
        _check_filter(request, schema, condition)
    filter_names = frozenset[str]() if condition is None else condition.attributes
    rules = page_rules(request, definition, index, condition, projector, filter_names=filter_names)
    check_scalar_keys(definition, placeholders.nested)
    read = ReadRange(
        wanted,
        rules,
        index=index,
        after=after,
        reverse=request.ScanIndexForward is False,
        consistent=bool(request.ConsistentRead),
    )
    return table, read


def _check_select(request: QueryInput) -> None:
    try:
        check_select(request)
    except ValidationException as error:
        # Query reports this fault like a broken constraint. Scan does not.
        raise ValidationException(detected(error.message)) from None


def _check_filter(request: QueryInput, schema: KeySchema, condition: Condition) -> None:
    """Refuse a filter that names a key attribute of the table or index."""
    for attribute in schema.attributes:
        if attribute.name in condition.attributes:
            member = "Filter Expression" if request.FilterExpression else "QueryFilter"
            raise ValidationException(
                f"{member} can only contain non-primary key attributes: "
                f"Primary key attribute: {attribute.name}"
            )


def _check_start(
    table: TableDefinition,
    index: IndexDefinition | None,
    condition: KeyCondition,
    start_key: Item,
) -> None:
    """Check that a start key, which fits the schema, is in the range of a Query.

    Raises ``ValidationException`` if the key is outside, or the range has at most one item.
    """
    wanted = key_range.selected_range(condition)
    if key_range.contains(wanted, start_position(table, index, start_key)):
        if has_one_item(table, index):
            shown = ", ".join(
                f"{name}=AttributeValue: {attribute_value.shown(value)}"
                for name, value in start_key.items()
            )
            raise ValidationException(
                f"The provided exclusive start key is invalid: ExclusiveStartKey: {{{shown}}}"
            )
        return
    if not condition.sort:
        raise ValidationException(
            "The provided starting key is outside query boundaries based on provided conditions"
        )
    partition = index.key_schema.partition if index else table.key_schema.partition
    names = [attribute.name for attribute in partition]
    in_partition = start_key | dict(zip(names, condition.partition, strict=True))
    if key_range.contains(wanted, start_position(table, index, in_partition)):
        # The key fits the sort condition, and belongs to another partition key.
        raise ValidationException("The query can return at most one row and cannot be restarted")
    raise ValidationException("The provided starting key does not match the range key predicate")


OPERATION = Operation(
    QueryInput,
    handle,
    asks=data_asks.query,
    effect=Effect.READS,
    location=Location.HOME,
    layer=NEWER_READS,
    reads_past=True,
    faults=DATA_FAULTS,
)

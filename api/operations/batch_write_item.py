"""BatchWriteItem."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct, field, json

from dynactor.actors.database.database import Database
from dynactor.actors.partition.messages import Written
from dynactor.actors.table.table import Table
from dynactor.api.access import data_asks
from dynactor.api.answers.item_answers import collection_metrics, joined
from dynactor.api.execution.operation import BATCH_FAULTS, Location, Operation
from dynactor.api.requests import inputs
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import BatchWriteItemInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.capacity import Receipt, consumed_capacity
from dynactor.model.definitions.index import check_size_with_entries
from dynactor.model.errors import (
    DynamoDBError,
    InternalServerError,
    Throttled,
    TransactionConflictException,
    ValidationException,
)
from dynactor.model.keys import key as keys
from dynactor.model.limits import BATCH_WRITE_REQUESTS
from dynactor.model.tables.key_rules import check_batch_put_key, check_index_keys, check_key
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Delete, Put


class _TableWrites(NamedTuple):
    """The writes of one table; ``given_name`` is the name in the request."""

    given_name: str
    name: str
    requests: list[inputs.WriteRequestShape]
    writes: list[Put | Delete]


# Both parts of an item's position: its encoded partition key and sort key.
_Parts: TypeAlias = tuple[bytes, bytes]


class _WriteOutcome(Struct):
    """The outcome of the writes of one table; collections by their encoded partition keys."""

    written: bool = False
    receipt: Receipt = Receipt()
    refusal: Throttled | InternalServerError | None = None
    unprocessed: list[Any] = field(default_factory=list)
    # The partition key attribute and the size of each item collection.
    collections: dict[bytes, tuple[Item, int]] = field(default_factory=dict)


async def handle(call: Call[BatchWriteItemInput]) -> bytes:
    """Put and delete items of several tables; each write is independent.

    An invalid request writes nothing. UnprocessedItems has the writes that were throttled, that the
    store refused, or whose item a transaction has locked. The batch fails if it wrote nothing, or
    if the outcome of a write is unknown.
    """
    request = call.request
    batch = _checked(request)
    tables = [_checked_table(call.database, table_writes) for table_writes in batch]
    replies = [
        [_submitted(table, *write) for write in zip(table_writes.writes, parts, strict=True)]
        for table_writes, (table, parts) in zip(batch, tables, strict=True)
    ]
    counts_units = request.ReturnConsumedCapacity not in (None, "NONE")
    results = await _results(call, [table for table, _ in tables], replies)
    outcomes = [
        _outcome(table_writes, parts, table_results, counts_units=counts_units)
        for table_writes, (_, parts), table_results in zip(batch, tables, results, strict=True)
    ]
    refusals = [outcome.refusal for outcome in outcomes if outcome.refusal is not None]
    if refusals and not any(outcome.written for outcome in outcomes):
        raise refusals[0]
    unprocessed = {
        table_writes.given_name: outcome.unprocessed
        for table_writes, outcome in zip(batch, outcomes, strict=True)
        if outcome.unprocessed
    }
    members = [b'"UnprocessedItems":' + json.encode(unprocessed)]
    if request.ReturnItemCollectionMetrics == "SIZE":
        metrics = {
            table_writes.given_name: [
                collection_metrics(table.definition.key_schema, key, size_bytes)
                for key, size_bytes in outcome.collections.values()
            ]
            for table_writes, (table, _), outcome in zip(batch, tables, outcomes, strict=True)
            if outcome.collections
        }
        members.append(b'"ItemCollectionMetrics":' + json.encode(metrics))
    consumed = [
        consumed_capacity(table_writes.name, outcome.receipt, request.ReturnConsumedCapacity)
        for table_writes, outcome in zip(batch, outcomes, strict=True)
    ]
    if any(consumed):
        members.append(b'"ConsumedCapacity":' + json.encode(consumed))
    return joined(members)


async def _results(
    call: Call[BatchWriteItemInput],
    tables: list[Table],
    replies: list[list[asyncio.Future[Written]]],
) -> list[list[Written | DynamoDBError]]:
    """Wait for the outcomes of all writes, by table, even if some writes fail.

    If an error were answered earlier, the client could read a half-written batch.
    """
    results: list[list[Written | DynamoDBError]] = []
    try:
        for table, table_writes in zip(tables, replies, strict=True):
            all_collections: list[Written | DynamoDBError] = []
            # Await the replies one after another. Most complete together, and awaiting a completed
            # one takes no turn of the event loop.
            for reply in table_writes:
                result: Written | DynamoDBError
                try:
                    result = await reply
                except DynamoDBError as error:
                    result = error
                call.note(table.definition, result.receipt)
                all_collections.append(result)
            results.append(all_collections)
    finally:
        # After a cancellation nobody awaits the other replies. Reading their exceptions keeps
        # asyncio from logging them.
        for table_writes in replies:
            for reply in table_writes:
                if not reply.cancel() and not reply.cancelled():
                    reply.exception()
    return results


def _outcome(
    table_writes: _TableWrites,
    parts: list[_Parts],
    results: list[Written | DynamoDBError],
    *,
    counts_units: bool,
) -> _WriteOutcome:
    """The outcome of one table's writes. Raises any other error than those of single writes."""
    outcome = _WriteOutcome()
    for request, write, (partition_key, _), result in zip(
        table_writes.requests, table_writes.writes, parts, results, strict=True
    ):
        if isinstance(result, Written):
            outcome.written = True
            if counts_units:
                outcome.receipt += result.receipt
            if result.collection_size_bytes is not None:
                outcome.collections[partition_key] = write.identity, result.collection_size_bytes
        elif isinstance(result, Throttled) or (
            isinstance(result, InternalServerError) and result.wrote_nothing
        ):
            outcome.unprocessed.append(_as_given(request))
            outcome.refusal = result
        elif isinstance(result, TransactionConflictException):
            outcome.unprocessed.append(_as_given(request))
        else:
            raise result
    return outcome


def _checked(request: BatchWriteItemInput) -> list[_TableWrites]:
    """Check everything that does not need the table."""
    batch = []
    count = 0
    for given_name, requests in request.RequestItems.items():
        name = table_name(given_name)
        writes = [_write(one) for one in requests]
        count += len(writes)
        if count > BATCH_WRITE_REQUESTS:
            raise ValidationException("Too many items requested for the BatchWriteItem call")
        batch.append(_TableWrites(given_name, name, requests, writes))
    return batch


def _write(request: inputs.WriteRequestShape) -> Put | Delete:
    put, delete = request.PutRequest, request.DeleteRequest
    if put is not None and delete is None:
        size_bytes = items.check(put.Item)
        items.check_size(size_bytes)
        return Put(put.Item, size_bytes)
    if delete is not None and put is None:
        items.check(delete.Key)
        return Delete(delete.Key)
    raise ValidationException(
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of "
        "the supported datatypes"
    )


def _checked_table(database: Database, table_writes: _TableWrites) -> tuple[Table, list[_Parts]]:
    """The table, and the position of each write."""
    table = database.table(table_writes.name)
    definition = table.definition
    schema = definition.key_schema
    all_collections = []
    for write in table_writes.writes:
        parts = table.encode_parts(write.identity)
        if isinstance(write, Put):
            if parts is None:
                check_batch_put_key(schema, write.item)
            check_index_keys(definition, write.item)
            check_size_with_entries(definition.local_indexes, schema, write.item, write.size_bytes)
        elif parts is None or len(write.key) != len(schema.attributes):
            check_key(schema, write.key)
        all_collections.append(parts or keys.encoded_parts(schema, write.identity))
    if len(set(all_collections)) < len(all_collections):
        raise ValidationException("Provided list of item keys contains duplicates")
    return table, all_collections


def _as_given(request: inputs.WriteRequestShape) -> dict[str, Any]:
    if request.PutRequest is not None:
        return {"PutRequest": {"Item": request.PutRequest.Item}}
    assert request.DeleteRequest is not None
    return {"DeleteRequest": {"Key": request.DeleteRequest.Key}}


def _submitted(table: Table, write: Put | Delete, parts: _Parts) -> asyncio.Future[Written]:
    """Submit one write. If it is refused at once, only this write fails and not the batch."""
    try:
        return table.submit(write, parts)
    except DynamoDBError as error:
        refused: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        refused.set_exception(error)
        return refused


OPERATION = Operation(
    BatchWriteItemInput,
    handle,
    asks=data_asks.batch_write_item,
    location=Location.HOME,
    faults=BATCH_FAULTS,
    unprocessed_member="UnprocessedItems",
)

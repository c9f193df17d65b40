"""BatchWriteItem."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, NamedTuple

from msgspec import Struct, field, json

from actors.database import Database
from actors.partition import Written
from actors.table import Table
from api import shapes, structures
from api.arn import table_name
from api.item_answers import collection_metrics, joined
from api.operation import Call, Operation
from model import item as items
from model import key as keys
from model.capacity import Receipt, consumed_capacity
from model.errors import (
    DynamoDBError,
    Throttled,
    TransactionConflictException,
    ValidationException,
)
from model.index import check_size_with_entries
from model.item import Item
from model.key_rules import check_batch_put_key, check_index_keys, check_key
from model.limits import BATCH_WRITE_REQUESTS
from model.write import Delete, Put


class BatchWriteItemInput(structures.Shape, frozen=True):
    """The members of BatchWriteItem."""

    RequestItems: structures.BatchWriteRequests
    ReturnConsumedCapacity: shapes.ReturnConsumedCapacity | None = None
    ReturnItemCollectionMetrics: shapes.ReturnItemCollectionMetrics | None = None


class _TableWrites(NamedTuple):
    """The writes of one table; ``given_name`` is how the request names it."""

    given_name: str
    name: str
    requests: list[structures.WriteRequestShape]
    writes: list[Put | Delete]


class _Outcome(Struct):
    """What became of the writes of one table; collections by their encoded partition keys."""

    written: bool = False
    receipt: Receipt = Receipt()
    refusal: Throttled | None = None
    unprocessed: list[Any] = field(default_factory=list)
    collections: dict[bytes, dict[str, Any]] = field(default_factory=dict)


async def handle(call: Call[BatchWriteItemInput]) -> bytes:
    """Put and delete items of several tables; each write is on its own.

    Nothing is written if anything is wrong with the request. Writes refused for want of
    capacity, or as a transaction has the item, are given back as UnprocessedItems; the batch
    fails only if nothing was written for want of capacity.
    """
    request = call.request
    batch = _checked(request)
    tables = [_checked_table(call.database, of_table) for of_table in batch]
    replies = [
        [_submitted(call, table, write) for write in of_table.writes]
        for of_table, table in zip(batch, tables, strict=True)
    ]
    outcomes = [
        _outcome(of_table, table, await asyncio.gather(*of_replies, return_exceptions=True))
        for of_table, table, of_replies in zip(batch, tables, replies, strict=True)
    ]
    refusals = [outcome.refusal for outcome in outcomes if outcome.refusal is not None]
    if refusals and not any(outcome.written for outcome in outcomes):
        raise refusals[0]
    unprocessed = {
        of_table.given_name: outcome.unprocessed
        for of_table, outcome in zip(batch, outcomes, strict=True)
        if outcome.unprocessed
    }
    members = [b'"UnprocessedItems":' + json.encode(unprocessed)]
    if request.ReturnItemCollectionMetrics == "SIZE":
        metrics = {
            of_table.given_name: list(outcome.collections.values())
            for of_table, outcome in zip(batch, outcomes, strict=True)
            if outcome.collections
        }
        members.append(b'"ItemCollectionMetrics":' + json.encode(metrics))
    consumed = [
        consumed_capacity(of_table.name, outcome.receipt, request.ReturnConsumedCapacity)
        for of_table, outcome in zip(batch, outcomes, strict=True)
    ]
    if any(consumed):
        members.append(b'"ConsumedCapacity":' + json.encode(consumed))
    return joined(members)


def _outcome(
    of_table: _TableWrites, table: Table, results: list[Written | BaseException]
) -> _Outcome:
    """What became of the writes of one table; raises what is no want of capacity."""
    outcome = _Outcome()
    schema = table.definition.key_schema
    for request, write, result in zip(of_table.requests, of_table.writes, results, strict=True):
        if isinstance(result, Throttled | TransactionConflictException):
            outcome.unprocessed.append(_as_given(request))
            if isinstance(result, Throttled):
                outcome.refusal = result
        elif isinstance(result, BaseException):
            raise result
        else:
            outcome.written = True
            outcome.receipt += result.receipt
            if result.collection_size_bytes is not None:
                key = _key(write)
                outcome.collections[keys.encode_partition(schema, key)] = collection_metrics(
                    schema, key, result.collection_size_bytes
                )
    return outcome


def _checked(request: BatchWriteItemInput) -> list[_TableWrites]:
    """Check all that needs no table."""
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


def _write(request: structures.WriteRequestShape) -> Put | Delete:
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


def _checked_table(database: Database, of_table: _TableWrites) -> Table:
    table = database.table(of_table.name)
    schema = table.definition.key_schema
    seen = set()
    for write in of_table.writes:
        if isinstance(write, Put):
            check_batch_put_key(schema, write.item)
            check_index_keys(table.definition, write.item)
            check_size_with_entries(
                table.definition.local_indexes, schema, write.item, write.size_bytes
            )
        else:
            check_key(schema, write.key)
        seen.add(keys.encode(schema, _key(write)))
    if len(seen) < len(of_table.writes):
        raise ValidationException("Provided list of item keys contains duplicates")
    return table


def _as_given(request: structures.WriteRequestShape) -> dict[str, Any]:
    """A write as the request had it, ready to be sent again."""
    if request.PutRequest is not None:
        return {"PutRequest": {"Item": request.PutRequest.Item}}
    assert request.DeleteRequest is not None
    return {"DeleteRequest": {"Key": request.DeleteRequest.Key}}


def _key(write: Put | Delete) -> Item:
    return write.item if isinstance(write, Put) else write.key


def _submitted(
    call: Call[BatchWriteItemInput], table: Table, write: Put | Delete
) -> Awaitable[Written]:
    """Send one write; a refusal at the door is its outcome, not that of the batch."""
    try:
        return call.noting(table.definition, table.submit(write))
    except DynamoDBError as error:
        refused: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        refused.set_exception(error)
        return refused


OPERATION = Operation("BatchWriteItem", BatchWriteItemInput, handle)

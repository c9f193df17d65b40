"""The JSON answers of item operations, joined from stored bytes if possible."""

from __future__ import annotations

from typing import Any, Final

from msgspec import json

from dynactor.actors.partition.messages import Written
from dynactor.model.capacity import Receipt, ReturnConsumedCapacity, consumed_capacity
from dynactor.model.expressions.projection import Projector
from dynactor.model.keys.key import KeySchema
from dynactor.model.limits import GIB
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem

EMPTY: Final = b"{}"


def joined(members: list[bytes]) -> bytes:
    """A JSON object of members that are JSON texts ``"Name":value``."""
    return b"{%b}" % b",".join(members)


def array_member(name: bytes, texts: list[bytes]) -> bytes:
    """A member that is an array of these JSON texts."""
    return b'"%b":[%b]' % (name, b",".join(texts))


def projected(stored: StoredItem, projector: Projector | None) -> bytes:
    """An item's JSON, complete or projected."""
    return stored.data if projector is None else items.encode(projector.project(stored.item))


def capacity_member(
    name: str, receipt: Receipt, mode: ReturnConsumedCapacity | None
) -> list[bytes]:
    """The ConsumedCapacity member, if requested."""
    consumed = consumed_capacity(name, receipt, mode)
    return [] if consumed is None else [b'"ConsumedCapacity":' + json.encode(consumed)]


def collection_metrics(schema: KeySchema, key: Item, size_bytes: int) -> dict[str, Any]:
    """ItemCollectionMetrics: the collection's key and its size between whole gigabytes (S63)."""
    (partition,) = schema.partition
    whole_gib = size_bytes // GIB
    return {
        "ItemCollectionKey": {partition.name: key[partition.name]},
        "SizeEstimateRangeGB": [float(whole_gib), float(whole_gib + 1)],
    }


def write_answer(
    *,
    table_name: str,
    schema: KeySchema,
    key: Item,
    written: Written,
    return_capacity: ReturnConsumedCapacity | None,
    return_metrics: str | None,
) -> bytes:
    """The answer of PutItem, UpdateItem and DeleteItem."""
    if not written.attributes and return_capacity is None and return_metrics is None:
        return EMPTY
    members = []
    if written.attributes:
        members.append(b'"Attributes":' + items.encode(written.attributes))
    members += capacity_member(table_name, written.receipt, return_capacity)
    if return_metrics == "SIZE" and written.collection_size_bytes is not None:
        metrics = collection_metrics(schema, key, written.collection_size_bytes)
        members.append(b'"ItemCollectionMetrics":' + json.encode(metrics))
    return joined(members) if members else EMPTY

"""BatchGetItem."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msgspec import json

from actors.database import Database
from actors.table import Table
from api import shapes, structures
from api.arn import table_name
from api.item_answers import joined, projected
from api.item_requests import check_together, placeholders_of, projector_of
from api.operation import Call, Operation
from model import capacity
from model import item as items
from model.capacity import Receipt, consumed_capacity
from model.errors import ValidationException
from model.expressions.key_paths import check_scalar_keys
from model.expressions.projection import Projector
from model.item import Item
from model.key_rules import check_key
from model.limits import BATCH_GET_KEYS, BATCH_GET_RESPONSE_BYTES

# A hundred items of 400 KB are more than twice what an answer holds.
_KEYS_AT_ONCE: Final = 10


class BatchGetItemInput(structures.Shape, frozen=True):
    """The members of BatchGetItem."""

    RequestItems: structures.BatchGetRequests
    ReturnConsumedCapacity: shapes.ReturnConsumedCapacity | None = None


class _TableGets(NamedTuple):
    """What is asked of one table; ``given_name`` is how the request names it."""

    given_name: str
    name: str
    request: structures.KeysAndAttributesShape
    projector: Projector | None
    # The attributes that the projection looks into.
    nested: set[str]


async def handle(call: Call[BatchGetItemInput]) -> bytes:
    """Read items of several tables, each at the price of a GetItem.

    Once the answer holds 16 MB, the keys left are given back as UnprocessedKeys.
    """
    request = call.request
    gets = _checked(request)
    tables = [_checked_table(call.database, of_table) for of_table in gets]
    responses: list[bytes] = []
    unprocessed: dict[str, Any] = {}
    consumed: list[dict[str, Any]] = []
    room_bytes = BATCH_GET_RESPONSE_BYTES
    for of_table, table in zip(gets, tables, strict=True):
        keys_left = of_table.request.Keys
        found: list[bytes] = []
        read_units = 0.0
        while keys_left and room_bytes >= 0:
            keys_read = 0
            for stored in await table.get(keys_left[:_KEYS_AT_ONCE]):
                room_bytes -= stored.size_bytes if stored else 0
                if room_bytes < 0:
                    break
                keys_read += 1
                read_units += capacity.read_units(
                    capacity.read_blocks(stored.size_bytes) if stored else 1,
                    consistent=bool(of_table.request.ConsistentRead),
                )
                if stored is not None:
                    found.append(projected(stored, of_table.projector))
            keys_left = keys_left[keys_read:]
        if keys_left:
            unprocessed[of_table.given_name] = _rest(of_table.request, keys_left)
        responses.append(json.encode(of_table.given_name) + b":[" + b",".join(found) + b"]")
        units = consumed_capacity(
            of_table.name, Receipt(read_units=read_units), request.ReturnConsumedCapacity
        )
        if units is not None:
            consumed.append(units)
    members = [
        b'"Responses":' + joined(responses),
        b'"UnprocessedKeys":' + json.encode(unprocessed),
    ]
    if consumed:
        members.append(b'"ConsumedCapacity":' + json.encode(consumed))
    return joined(members)


def _checked(request: BatchGetItemInput) -> list[_TableGets]:
    """Check all that needs no table."""
    gets = []
    keys_count = 0
    for given_name, of_table in request.RequestItems.items():
        name = table_name(given_name)
        check_together(of_table)
        placeholders = placeholders_of(of_table)
        projector = projector_of(of_table, placeholders)
        placeholders.check_all_used()
        _check_keys(of_table.Keys)
        keys_count += len(of_table.Keys)
        if keys_count > BATCH_GET_KEYS:
            raise ValidationException("Too many items requested for the BatchGetItem call")
        gets.append(_TableGets(given_name, name, of_table, projector, placeholders.nested))
    return gets


def _check_keys(wanted: list[Item]) -> None:
    """Check the values of keys, and that none stands twice, whatever the table's key is."""
    for key in wanted:
        items.check(key)
    if len({json.encode(key, order="sorted") for key in wanted}) < len(wanted):
        raise ValidationException("Provided list of item keys contains duplicates")


def _checked_table(database: Database, of_table: _TableGets) -> Table:
    table = database.table(of_table.name)
    schema = table.definition.key_schema
    for key in of_table.request.Keys:
        check_key(schema, key)
    check_scalar_keys(table.definition, of_table.nested)
    return table


def _rest(request: structures.KeysAndAttributesShape, keys_left: list[Item]) -> dict[str, Any]:
    """A request for the keys that were not read, ready to be sent again."""
    rest: dict[str, Any] = {
        name: value
        for name in (
            "AttributesToGet",
            "ConsistentRead",
            "ProjectionExpression",
            "ExpressionAttributeNames",
        )
        if (value := getattr(request, name)) is not None
    }
    return {"Keys": keys_left, **rest}


OPERATION = Operation("BatchGetItem", BatchGetItemInput, handle)

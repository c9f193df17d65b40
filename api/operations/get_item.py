"""GetItem."""

from __future__ import annotations

from api import shapes, structures
from api.arn import table_name
from api.item_answers import EMPTY, capacity_member, joined, projected
from api.item_requests import check_together, placeholders_of, projector_of
from api.operation import Call, Operation
from model import item as items
from model.expressions.key_paths import check_scalar_keys
from model.key_rules import check_key


class GetItemInput(structures.Shape, frozen=True):
    """The members of GetItem."""

    TableName: shapes.TableName
    Key: shapes.Key
    AttributesToGet: shapes.AttributeNameList | None = None
    ConsistentRead: bool | None = None
    ReturnConsumedCapacity: shapes.ReturnConsumedCapacity | None = None
    ProjectionExpression: str | None = None
    ExpressionAttributeNames: shapes.ExpressionAttributeNames | None = None


async def handle(call: Call[GetItemInput]) -> bytes:
    """Read one item: every read is strongly consistent, ConsistentRead changes its price."""
    request = call.request
    name = table_name(request.TableName)
    check_together(request)
    items.check(request.Key)
    placeholders = placeholders_of(request)
    projector = projector_of(request, placeholders)
    placeholders.check_all_used()
    table = call.database.table(name)
    check_key(table.definition.key_schema, request.Key)
    check_scalar_keys(table.definition, placeholders.nested)
    consistent = bool(request.ConsistentRead)
    read = await table.get(request.Key, consistent=consistent)
    if call.paid is not None:
        call.note(table.definition, read.receipt(consistent=consistent))
    found = read.stored
    members = []
    if found is not None:
        members.append(b'"Item":' + projected(found, projector))
    if request.ReturnConsumedCapacity is not None:
        receipt = read.receipt(consistent=consistent)
        members += capacity_member(name, receipt, request.ReturnConsumedCapacity)
    return joined(members) if members else EMPTY


OPERATION = Operation("GetItem", GetItemInput, handle)

"""The actions of operations on items.

Sources: Developer Guide, "DynamoDB API permissions reference", "Using IAM with DynamoDB
transactions" and "IAM security policies with PartiQL for DynamoDB".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from dynactor.api.access.ask import Ask, Asking
from dynactor.api.access.facts import DataFacts
from dynactor.api.access.item_facts import ItemFacts, QueryFacts, ScanFacts, StatementFacts
from dynactor.api.requests import inputs
from dynactor.api.requests.foreign_arns import named_table
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import DynamoDBError
from dynactor.model.partiql.binding import PreparedStatement, check_parameters, prepare
from dynactor.model.partiql.statement import (
    DeleteStatement,
    ExistsStatement,
    InsertStatement,
    SelectStatement,
    Statement,
    UpdateStatement,
)

_SPECIFIC: Final = ("SPECIFIC_ATTRIBUTES",)
_ALL: Final = ("ALL_ATTRIBUTES",)
_ALL_PROJECTED: Final = ("ALL_PROJECTED_ATTRIBUTES",)
_NONE: Final = ("NONE",)
_ALL_OLD: Final = ("ALL_OLD",)


def get_item(asking: Asking) -> Iterator[Ask]:
    """GetItem."""
    request = asking.request
    own = {"select": _selected(request), "returnconsumedcapacity": _capacity(request)}
    yield _items_ask(asking, asking.action, request.TableName, own, (request.Key,), members=request)


def put_item(asking: Asking) -> Iterator[Ask]:
    """PutItem."""
    yield _write_ask(asking, asking.request.Item)


def change_item(asking: Asking) -> Iterator[Ask]:
    """UpdateItem and DeleteItem."""
    yield _write_ask(asking, asking.request.Key)


def _write_ask(asking: Asking, item: dict[str, Any]) -> Ask:
    request = asking.request
    own = {"returnvalues": _returned(request), "returnconsumedcapacity": _capacity(request)}
    return _items_ask(asking, asking.action, request.TableName, own, (item,), members=request)


def query(asking: Asking) -> Iterator[Ask]:
    """Query."""
    yield _page_ask(asking, QueryFacts)


def scan(asking: Asking) -> Iterator[Ask]:
    """Scan."""
    yield _page_ask(asking, ScanFacts)


def batch_get_item(asking: Asking) -> Iterator[Ask]:
    """BatchGetItem: the same action for each table."""
    capacity = _capacity(asking.request)
    for name, table_keys in asking.request.RequestItems.items():
        own = {"select": _selected(table_keys), "returnconsumedcapacity": capacity}
        yield _items_ask(asking, asking.action, name, own, table_keys.Keys, members=table_keys)


def batch_write_item(asking: Asking) -> Iterator[Ask]:
    """BatchWriteItem: the same action for each table."""
    own = {"returnconsumedcapacity": _capacity(asking.request)}
    for name, requests in asking.request.RequestItems.items():
        items = [item for one in requests for item in _written(one)]
        yield _items_ask(asking, asking.action, name, own, items, members=None)


def _written(request: inputs.WriteRequestShape) -> Iterator[dict[str, Any]]:
    """The items and keys in one write; the operation refuses all but one."""
    if request.PutRequest is not None:
        yield request.PutRequest.Item
    if request.DeleteRequest is not None:
        yield request.DeleteRequest.Key


def transact_get_items(asking: Asking) -> Iterator[Ask]:
    """TransactGetItems: GetItem for each item."""
    capacity = _capacity(asking.request)
    for one in asking.request.TransactItems:
        get = one.Get
        own = {
            "select": _selected(get),
            "returnconsumedcapacity": capacity,
            "enclosingoperation": (asking.operation,),
        }
        yield _items_ask(asking, "dynamodb:GetItem", get.TableName, own, (get.Key,), members=get)


# The members of an action in TransactWriteItems.
_ACTIONS: Final = {
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Put": "dynamodb:PutItem",
    "Delete": "dynamodb:DeleteItem",
    "Update": "dynamodb:UpdateItem",
}


def transact_write_items(asking: Asking) -> Iterator[Ask]:
    """TransactWriteItems: the action of each write or check."""
    capacity = _capacity(asking.request)
    for one in asking.request.TransactItems:
        for member, action in _ACTIONS.items():
            given = getattr(one, member)
            if given is None:
                continue
            own = {
                "returnvalues": _returned(given),
                "returnconsumedcapacity": capacity,
                "enclosingoperation": (asking.operation,),
            }
            item = given.Item if member == "Put" else given.Key
            yield _items_ask(asking, action, given.TableName, own, (item,), members=given)


def statements(asking: Asking, requests: Iterable[Any]) -> Iterator[Ask]:
    """The action of each statement of ``requests``, which have the members of ExecuteStatement.

    The operation finds the faults of statements. A faulty statement reads and writes nothing.
    """
    for one in requests:
        try:
            prepared = prepare(one.Statement)
        except DynamoDBError:
            continue
        try:
            yield _statement_ask(asking, one, prepared)
        except DynamoDBError:
            # The operation may look at the index before it reports the fault.
            if prepared.index is not None:
                yield _faulty_ask(asking, *prepared.index)


_STATEMENT_ACTIONS: Final[dict[type[Statement], str]] = {
    SelectStatement: "dynamodb:PartiQLSelect",
    ExistsStatement: "dynamodb:PartiQLSelect",
    InsertStatement: "dynamodb:PartiQLInsert",
    UpdateStatement: "dynamodb:PartiQLUpdate",
    DeleteStatement: "dynamodb:PartiQLDelete",
}


def _statement_ask(asking: Asking, request: Any, prepared: PreparedStatement) -> Ask:
    """The ask of one statement; raises ``ValidationException`` or ``SerializationException``."""
    parameters = request.Parameters or []
    check_parameters(parameters)
    statement = prepared.bound(parameters)
    source = statement.select if isinstance(statement, ExistsStatement) else statement
    name = named_table(asking.database, source.table)
    index = source.index if isinstance(source, SelectStatement) else None
    resource = asking.table_arn(name if index is None else f"{name}/index/{index}")
    own = _own_of_statement(asking, request, statement)
    facts = StatementFacts(
        asking.facts, asking.database.usable_table(name), own, prepared, statement
    )
    return Ask(_STATEMENT_ACTIONS[type(statement)], resource, facts)


def _faulty_ask(asking: Asking, table: str, index: str) -> Ask:
    name = table.rpartition("/")[2]
    facts = DataFacts(asking.facts, None, {})
    return Ask("dynamodb:PartiQLSelect", asking.table_arn(f"{name}/index/{index}"), facts)


def _own_of_statement(
    asking: Asking, request: Any, statement: Statement
) -> Mapping[str, Sequence[str] | None]:
    own: dict[str, Sequence[str] | None] = {"enclosingoperation": (asking.operation,)}
    match statement:
        case ExistsStatement() if request.ReturnValuesOnConditionCheckFailure == "ALL_OLD":
            # A failed check returns the whole item.
            own["select"] = _ALL
        case SelectStatement(projector=projector) | ExistsStatement(
            SelectStatement(projector=projector)
        ):
            own["select"] = _ALL if projector is None else _SPECIFIC
        case UpdateStatement(return_values=return_values):
            own["returnvalues"] = _with_failure(return_values, request)
        case DeleteStatement(returning=returning):
            own["returnvalues"] = _with_failure("ALL_OLD" if returning else "NONE", request)
    return own


def _items_ask(
    asking: Asking,
    action: str,
    given_name: str,
    own: Mapping[str, Sequence[str] | None],
    items: Sequence[dict[str, Any]],
    *,
    members: Struct | None,
) -> Ask:
    """The ask of an action on items of one table; ``members`` has the expressions."""
    name = table_name(given_name)
    facts = ItemFacts(asking.facts, asking.database.usable_table(name), own, items, members)
    return Ask(action, asking.table_arn(name), facts)


def _page_ask(asking: Asking, facts: type[ScanFacts]) -> Ask:
    request = asking.request
    name = table_name(request.TableName)
    own = {
        "select": _selected_in_page(request),
        "returnconsumedcapacity": _capacity(request),
    }
    index = request.IndexName
    resource = asking.table_arn(name if index is None else f"{name}/index/{index}")
    table = asking.database.usable_table(name)
    return Ask(asking.action, resource, facts(asking.facts, table, own, request))


def _selected(request: Any) -> Sequence[str]:
    """The Select of a read by key, which depends on its projection."""
    if getattr(request, "AttributesToGet", None) or request.ProjectionExpression is not None:
        return _SPECIFIC
    return _ALL


def _selected_in_page(request: Any) -> Sequence[str]:
    if request.Select is not None:
        return (request.Select,)
    if request.AttributesToGet is not None or request.ProjectionExpression is not None:
        return _SPECIFIC
    return _ALL if request.IndexName is None else _ALL_PROJECTED


def _capacity(request: Any) -> Sequence[str]:
    return (request.ReturnConsumedCapacity or "NONE",)


def _returned(request: Any) -> Sequence[str]:
    return _with_failure(getattr(request, "ReturnValues", None) or "NONE", request)


def _with_failure(return_values: str, request: Any) -> Sequence[str]:
    """ReturnValues, and ALL_OLD too if a failed condition returns the item."""
    if request.ReturnValuesOnConditionCheckFailure != "ALL_OLD" or return_values == "ALL_OLD":
        return (return_values,)
    return _ALL_OLD if return_values == "NONE" else (return_values, "ALL_OLD")

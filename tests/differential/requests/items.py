"""Random requests on items, which are valid unless parts of their expressions don't fit."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.differential.requests import legacy, values
from tests.differential.requests.expressions import Expressions
from tests.differential.requests.schemas import LocalIndex, Schema

Body = dict[str, Any]


def _capacity(random: Random, body: Body) -> None:
    if random.random() < 0.3:
        body["ReturnConsumedCapacity"] = random.choice(("TOTAL", "INDEXES", "NONE"))


def _metrics(random: Random, body: Body) -> None:
    if random.random() < 0.15:
        body["ReturnItemCollectionMetrics"] = random.choice(("SIZE", "NONE"))


def _return_values(random: Random, body: Body, allowed: tuple[str, ...]) -> None:
    if random.random() < 0.6:
        body["ReturnValues"] = random.choice(allowed)
    if random.random() < 0.2:
        body["ReturnValuesOnConditionCheckFailure"] = random.choice(("ALL_OLD", "NONE"))


def _write_condition(random: Random, body: Body, expressions: Expressions) -> None:
    choice = random.random()
    if choice < 0.35:
        body["ConditionExpression"] = expressions.condition()
    elif choice < 0.5 and "UpdateExpression" not in body:
        body["Expected"] = legacy.expected(random)
        if random.random() < 0.3:
            body["ConditionalOperator"] = random.choice(("AND", "OR"))


def put_item(random: Random, schema: Schema, table: str) -> Body:
    """The body of a PutItem."""
    body: Body = {"TableName": table, "Item": values.item(random, schema)}
    expressions = Expressions(random, schema)
    _write_condition(random, body, expressions)
    expressions.add_to(body)
    _return_values(random, body, ("NONE", "ALL_OLD"))
    _capacity(random, body)
    _metrics(random, body)
    return body


def delete_item(random: Random, schema: Schema, table: str) -> Body:
    """The body of a DeleteItem."""
    body: Body = {"TableName": table, "Key": values.key(random, schema)}
    expressions = Expressions(random, schema)
    _write_condition(random, body, expressions)
    expressions.add_to(body)
    _return_values(random, body, ("NONE", "ALL_OLD"))
    _capacity(random, body)
    _metrics(random, body)
    return body


def update_item(random: Random, schema: Schema, table: str) -> Body:
    """An UpdateItem, by expression or by AttributeUpdates."""
    body: Body = {"TableName": table, "Key": values.key(random, schema)}
    expressions = Expressions(random, schema)
    choice = random.random()
    if choice < 0.75:
        body["UpdateExpression"] = expressions.update()
        _write_condition(random, body, expressions)
    elif choice < 0.97:
        body["AttributeUpdates"] = legacy.updates(random)
        if random.random() < 0.4:
            body["Expected"] = legacy.expected(random)
    expressions.add_to(body)
    _return_values(
        random, body, ("NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW", "UPDATED_NEW")
    )
    _capacity(random, body)
    _metrics(random, body)
    return body


def _projection(random: Random, body: Body, expressions: Expressions) -> None:
    choice = random.random()
    if choice < 0.35:
        body["ProjectionExpression"] = expressions.projection()
    elif choice < 0.45:
        names = (*values.ATTRIBUTES, *(name for name, _ in expressions.schema.key))
        body["AttributesToGet"] = random.sample(names, random.randint(1, 4))


def get_item(random: Random, schema: Schema, table: str) -> Body:
    """The body of a GetItem."""
    body: Body = {"TableName": table, "Key": values.key(random, schema)}
    expressions = Expressions(random, schema)
    _projection(random, body, expressions)
    expressions.add_to(body)
    if random.random() < 0.5:
        body["ConsistentRead"] = random.random() < 0.6
    _capacity(random, body)
    return body


def batch_get_item(random: Random, schema: Schema, table: str) -> Body:
    """A BatchGetItem, sometimes with a repeated key."""
    expressions = Expressions(random, schema)
    entry: Body = {"Keys": [values.key(random, schema) for _ in range(random.randint(1, 3))]}
    _projection(random, entry, expressions)
    if expressions.names:
        entry["ExpressionAttributeNames"] = expressions.names
    if random.random() < 0.5:
        entry["ConsistentRead"] = random.random() < 0.6
    body: Body = {"RequestItems": {table: entry}}
    _capacity(random, body)
    return body


def batch_write_item(random: Random, schema: Schema, table: str) -> Body:
    """A BatchWriteItem, sometimes with a repeated key."""
    requests = [
        {"PutRequest": {"Item": values.item(random, schema)}}
        if random.random() < 0.6
        else {"DeleteRequest": {"Key": values.key(random, schema)}}
        for _ in range(random.randint(1, 3))
    ]
    body: Body = {"RequestItems": {table: requests}}
    _capacity(random, body)
    _metrics(random, body)
    return body


def _source(random: Random, schema: Schema, body: Body) -> LocalIndex | None:
    if schema.indexes and random.random() < 0.6:
        index = random.choice(schema.indexes)
        body["IndexName"] = index.name
        return index
    return None


def _select(random: Random, body: Body, *, index: bool) -> None:
    if random.random() < 0.3:
        allowed = ["ALL_ATTRIBUTES", "COUNT", "SPECIFIC_ATTRIBUTES"]
        if index:
            allowed.append("ALL_PROJECTED_ATTRIBUTES")
        body["Select"] = random.choice(allowed)
        chosen = "ProjectionExpression" in body or "AttributesToGet" in body
        if random.random() < 0.85 and chosen != (body["Select"] == "SPECIFIC_ATTRIBUTES"):
            del body["Select"]


def _start_key(random: Random, schema: Schema, index: LocalIndex | None, body: Body) -> None:
    if random.random() < 0.1:
        start = values.key(random, schema)
        if index is not None:
            start[index.sort[0]] = values.key_value(random, index.sort[1])
        body["ExclusiveStartKey"] = start


def query(random: Random, schema: Schema, table: str) -> Body:
    """A Query of the table or of an index."""
    body: Body = {"TableName": table}
    index = _source(random, schema, body)
    sort = schema.sort if index is None else index.sort
    keys = frozenset(name for name, _ in (schema.partition, *((sort,) if sort else ())))
    expressions = Expressions(random, schema)
    if random.random() < 0.8:
        body["KeyConditionExpression"] = expressions.key_condition(schema.partition, sort)
        if random.random() < 0.35:
            exclude = keys if random.random() < 0.95 else frozenset[str]()
            body["FilterExpression"] = expressions.condition(exclude=exclude)
    else:
        body["KeyConditions"] = legacy.key_conditions(random, schema.partition, sort)
        if random.random() < 0.3:
            body["QueryFilter"] = legacy.conditions(random, keys)
            if random.random() < 0.4:
                body["ConditionalOperator"] = random.choice(("AND", "OR"))
    if "KeyConditions" not in body or random.random() < 0.2:
        _projection(random, body, expressions)
    elif random.random() < 0.3:
        body["AttributesToGet"] = random.sample(tuple(values.ATTRIBUTES), 2)
    expressions.add_to(body)
    _select(random, body, index=index is not None)
    if random.random() < 0.4:
        body["ScanIndexForward"] = random.random() < 0.3
    if random.random() < 0.3:
        body["Limit"] = random.randint(1, 4)
    if random.random() < 0.3:
        body["ConsistentRead"] = random.random() < 0.6
    _start_key(random, schema, index, body)
    _capacity(random, body)
    return body


def scan(random: Random, schema: Schema, table: str) -> Body:
    """A Scan of the table or of an index, sometimes one segment of several."""
    body: Body = {"TableName": table}
    index = _source(random, schema, body)
    expressions = Expressions(random, schema)
    choice = random.random()
    if choice < 0.4:
        body["FilterExpression"] = expressions.condition()
    elif choice < 0.55:
        body["ScanFilter"] = legacy.conditions(random)
        if random.random() < 0.4:
            body["ConditionalOperator"] = random.choice(("AND", "OR"))
    if "ScanFilter" not in body:
        _projection(random, body, expressions)
    elif random.random() < 0.3:
        body["AttributesToGet"] = random.sample(tuple(values.ATTRIBUTES), 2)
    expressions.add_to(body)
    _select(random, body, index=index is not None)
    if random.random() < 0.1:
        body["TotalSegments"] = 1
        body["Segment"] = 0
    if random.random() < 0.1:
        body["Limit"] = random.randint(1, 100)
    if random.random() < 0.3:
        body["ConsistentRead"] = random.random() < 0.6
    _capacity(random, body)
    return body


Maker = Callable[[Random, Schema, str], Body]

MAKERS: dict[str, tuple[int, Maker]] = {
    "PutItem": (5, put_item),
    "UpdateItem": (9, update_item),
    "DeleteItem": (3, delete_item),
    "GetItem": (4, get_item),
    "Query": (9, query),
    "Scan": (5, scan),
    "BatchGetItem": (2, batch_get_item),
    "BatchWriteItem": (2, batch_write_item),
}

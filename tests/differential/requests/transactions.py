"""Random transactions of writes, reads and PartiQL statements."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.requests import statements, values
from tests.differential.requests.expressions import Expressions
from tests.differential.requests.request import Request, request
from tests.differential.requests.schemas import Schema

Body = dict[str, Any]


def transaction_request(random: Random, schema: Schema, table: str) -> Request:
    """A transaction of one to three actions, sometimes with the same item twice."""
    count = random.choice((1, 1, 2, 3))
    choice = random.random()
    if choice < 0.5:
        actions = [_write(random, schema, table) for _ in range(count)]
        body: Body = {"TransactItems": actions}
        if random.random() < 0.15:
            body["ReturnItemCollectionMetrics"] = random.choice(("SIZE", "NONE"))
        return request("TransactWriteItems", body | _capacity(random))
    if choice < 0.65:
        gets = [_get(random, schema, table) for _ in range(count)]
        return request("TransactGetItems", {"TransactItems": gets} | _capacity(random))
    of_reads = random.random() < 0.2
    made = [_statement(random, schema, table, of_reads=of_reads) for _ in range(count)]
    return request("ExecuteTransaction", {"TransactStatements": made} | _capacity(random))


def _capacity(random: Random) -> Body:
    if random.random() < 0.8:
        return {}
    return {"ReturnConsumedCapacity": random.choice(("TOTAL", "INDEXES", "NONE"))}


def _write(random: Random, schema: Schema, table: str) -> Body:
    kind = random.choice(("Put", "Update", "Update", "Delete", "ConditionCheck"))
    expressions = Expressions(random, schema)
    body: Body = {"TableName": table}
    if kind == "Put":
        body["Item"] = values.item(random, schema)
    else:
        body["Key"] = values.key(random, schema)
    if kind == "Update":
        # The update also sets an attribute: the servers may differ in the effect of an update that
        # only removes, and no answer would show the difference.
        body["UpdateExpression"] = f"SET t = {expressions.value({'BOOL': True})} "
        body["UpdateExpression"] += expressions.update(("REMOVE", "ADD", "DELETE"))
    if kind == "ConditionCheck" or random.random() < 0.4:
        body["ConditionExpression"] = expressions.condition()
    expressions.add_to(body)
    return {kind: body | _return_values(random)}


def _return_values(random: Random) -> Body:
    if random.random() < 0.7:
        return {}
    return {"ReturnValuesOnConditionCheckFailure": random.choice(("ALL_OLD", "NONE"))}


def _get(random: Random, schema: Schema, table: str) -> Body:
    expressions = Expressions(random, schema)
    body: Body = {"TableName": table, "Key": values.key(random, schema)}
    if random.random() < 0.5:
        body["ProjectionExpression"] = expressions.projection()
    if expressions.names:
        body["ExpressionAttributeNames"] = expressions.names
    return {"Get": body}


def _statement(random: Random, schema: Schema, table: str, *, of_reads: bool) -> Body:
    kinds = ("select_one",) if of_reads else ("insert", "update", "delete", "exists")
    made = statements.statement(random, schema, table, kinds)
    if random.random() < 0.9:
        made["Statement"] = made["Statement"].partition(" RETURNING ")[0]
    return made | _return_values(random)

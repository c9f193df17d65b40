"""Generates scenarios of valid and invalid requests from a seed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random

from tests.differential.differences.faults import Faults
from tests.differential.requests import items, statements, tables, transactions, values
from tests.differential.requests.request import Request, Scenario, request
from tests.differential.requests.schemas import SCHEMAS, Schema

REQUESTS_PER_SCENARIO = 40
ITEMS_AT_THE_START = 15


def scenarios(seed: int, requests: int) -> Iterator[Scenario]:
    """Scenarios with at least this many requests in total, of alternating kinds."""
    made = 0
    number = 0
    while made < requests:
        scenario = TURNS[number % len(TURNS)](seed * 100_000 + number)
        yield scenario
        made += len(scenario.requests)
        number += 1


def item_scenario(seed: int) -> Scenario:
    """A table with some items, and requests on them."""

    def made(random: Random, schema: Schema, table: str) -> Request:
        return item_request(random, schema, table, random.choices((0, 1, 2), (45, 35, 20))[0])

    return _on_items("items", seed, made)


def statement_scenario(seed: int) -> Scenario:
    """A table with some items, and statements on them."""
    return _on_items("statements", seed, statements.statement_request)


def transaction_scenario(seed: int) -> Scenario:
    """A table with some items, and transactions on them."""
    return _on_items("transactions", seed, transactions.transaction_request)


def _on_items(name: str, seed: int, made: Callable[[Random, Schema, str], Request]) -> Scenario:
    random = Random(f"{name} {seed}")
    schema = random.choice(SCHEMAS)
    table = f"{name.capitalize()}{seed}"
    create = schema.create_table(table, on_demand=random.random() < 0.5)
    delete = request("DeleteTable", {"TableName": table})
    setup = [delete, request("CreateTable", create)]
    setup += [
        request("PutItem", {"TableName": table, "Item": values.item(random, schema)})
        for _ in range(ITEMS_AT_THE_START)
    ]
    requests = tuple(made(random, schema, table) for _ in range(REQUESTS_PER_SCENARIO))
    return Scenario(table, tuple(setup), requests, (delete,))


def item_request(random: Random, schema: Schema, table: str, faults: int) -> Request:
    """A request on the items of a table, with this many faults."""
    weights = [weight for weight, _ in items.MAKERS.values()]
    operation = random.choices(tuple(items.MAKERS), weights)[0]
    body = items.MAKERS[operation][1](random, schema, table)
    told = tuple(Faults(random).break_body(operation, body) for _ in range(faults))
    return Request(operation, json.dumps(body, ensure_ascii=False), told)


TURNS = (
    *(item_scenario, item_scenario, statement_scenario, item_scenario, tables.scenario),
    *(item_scenario, item_scenario, transaction_scenario, item_scenario, tables.scenario),
)

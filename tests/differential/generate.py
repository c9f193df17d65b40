"""The generator: from a seed, scenarios of requests, valid and invalid, in a fixed order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from tests.differential import items, tables, values
from tests.differential.faults import Faults
from tests.differential.request import Request, Scenario, request
from tests.differential.schemas import SCHEMAS, Schema

REQUESTS_PER_SCENARIO = 40
ITEMS_AT_THE_START = 15


def scenarios(seed: int, requests: int) -> Iterator[Scenario]:
    """Scenarios of at least so many requests together; every fifth is about tables."""
    made = 0
    number = 0
    while made < requests:
        one = seed * 100_000 + number
        scenario = tables.scenario(one) if number % 5 == 4 else item_scenario(one)
        yield scenario
        made += len(scenario.requests)
        number += 1


def item_scenario(seed: int) -> Scenario:
    """A table with some items, and requests on them."""
    random = Random(f"items {seed}")
    schema = random.choice(SCHEMAS)
    table = f"Items{seed}"
    create = schema.create_table(table, on_demand=random.random() < 0.5)
    delete = request("DeleteTable", {"TableName": table})
    setup = [delete, request("CreateTable", create)]
    setup += [
        request("PutItem", {"TableName": table, "Item": values.item(random, schema)})
        for _ in range(ITEMS_AT_THE_START)
    ]
    requests = tuple(
        item_request(random, schema, table, random.choices((0, 1, 2), (45, 35, 20))[0])
        for _ in range(REQUESTS_PER_SCENARIO)
    )
    return Scenario(table, tuple(setup), requests, (delete,))


def item_request(random: Random, schema: Schema, table: str, faults: int) -> Request:
    """A request on the items of a table, broken in so many places."""
    weights = [weight for weight, _ in items.MAKERS.values()]
    operation = random.choices(tuple(items.MAKERS), weights)[0]
    body = items.MAKERS[operation][1](random, schema, table)
    told = tuple(Faults(random).break_body(operation, body) for _ in range(faults))
    return Request(operation, json.dumps(body, ensure_ascii=False), told)

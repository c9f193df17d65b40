"""Throttled and conflicting transactions: errors and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dynactor.actors.partition.item_locks import Prepare, Release, TransactionPart
from dynactor.model.writes.write import Put
from tests.support.databases.databases import running_database
from tests.support.databases.transacting import actions
from tests.support.servers.capacity import CapacityServer, capacity_server, units
from tests.support.servers.in_process import InProcessClient
from tests.support.tables.partiql import statement, typed
from tests.support.tables.tables import definition, global_index, unique_name
from tests.support.tables.transactions import (
    FAILED,
    NONE,
    Reason,
    cancelled,
    check,
    delete,
    get,
    put,
    read,
    update,
    write,
)

pytestmark = pytest.mark.ours_alone("no other server has a clock to set, or lets in")

TABLE_PROVISIONED = Reason(
    "ProvisionedThroughputExceeded",
    (
        "The level of configured provisioned throughput for the table was exceeded. Consider "
        "increasing your provisioning level with the UpdateTable API."
    ),
)
INDEX_PROVISIONED = Reason(
    "ProvisionedThroughputExceeded",
    (
        "The level of configured provisioned throughput for one or more global secondary indexes "
        "of the table was exceeded. Consider increasing your provisioning level for the "
        "under-provisioned global secondary indexes with the UpdateTable API."
    ),
)
MAXIMUM = Reason(
    "ThrottlingError",
    "Throughput exceeds the maximum OnDemandThroughput configured on table or index",
)
CONFLICT = Reason("TransactionConflict", "Transaction is ongoing for the item")


@pytest.fixture(scope="module")
def served() -> Iterator[CapacityServer]:
    with capacity_server() as served:
        yield served


def until_cancelled(served: CapacityServer, *actions: dict[str, Any]) -> int:
    """Repeat a transaction until it is canceled; return the number of successful ones."""
    request = {"TransactItems": list(actions)}
    return served.until_refused("TransactWriteItems", request)


def test_a_throttled_table_is_the_reason_of_its_action(served: CapacityServer) -> None:
    narrow, wide = served.table(**units(10, 10)), served.table(**units(1_000, 1_000))
    both = (put(wide, pk="a"), put(narrow, pk="b"))
    done = until_cancelled(served, *both)
    assert cancelled(served.wire, *both) == [NONE, TABLE_PROVISIONED]
    assert served.metrics("throttled_requests", narrow) == {("TransactWriteItems",): 2.0}
    assert served.metrics("throttled_requests", wide) == {}
    served.clock.step(1)
    # A transaction takes 2 units and a put one, so the table had units for about 5 transactions.
    assert 4 <= done <= 6
    assert 9 <= served.puts_until_refused(narrow) <= 11


def test_a_throttled_index_is_the_reason_of_its_action(served: CapacityServer) -> None:
    index = global_index("by-g", "g", ProvisionedThroughput=units(5, 5)["ProvisionedThroughput"])
    name = served.table(
        "pk:S",
        "g:S",
        GlobalSecondaryIndexes=[index],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        **units(1_000, 1_000),
    )
    for number in range(100):
        answer = served.wire.send(
            "TransactWriteItems", {"TransactItems": [put(name, pk=f"{number}", g="x")]}
        )
        if answer.status != 200:
            break
    assert cancelled(served.wire, put(name, pk="last", g="x"), put(name, pk="other")) == [
        INDEX_PROVISIONED,
        NONE,
    ]


def test_a_maximum_of_an_on_demand_table_is_a_throttling_error(served: CapacityServer) -> None:
    most = {"MaxReadRequestUnits": 4, "MaxWriteRequestUnits": 4}
    name = served.table(
        Tags=[{"Key": "dynactor:throttling", "Value": "enforce"}], OnDemandThroughput=most
    )
    until_cancelled(served, put(name, pk="a"))
    assert cancelled(served.wire, put(name, pk="a")) == [MAXIMUM]
    request = {"TransactItems": [get(name, pk="a")]}
    assert served.until_refused("TransactGetItems", request) >= 1
    assert cancelled(served.wire, get(name, pk="a"), operation="TransactGetItems") == [MAXIMUM]


def test_metrics_count_the_double_units_of_transactions(served: CapacityServer) -> None:
    name = served.table(**units(100, 100))
    write(served.wire, put(name, pk="a"), check(name, "attribute_not_exists(pk)", {}, pk="b"))
    read(served.wire, get(name, pk="a"), get(name, pk="none"))
    assert served.metrics("consumed_write_capacity_units", name) == {("",): 4.0}
    assert served.metrics("consumed_read_capacity_units", name) == {("",): 4.0}
    assert served.metrics("transaction_conflict", name) == {}


@pytest.mark.parametrize("write_units", [10, 4_000], ids=["one partition", "several"])
def test_a_cancelled_transaction_costs_the_same_as_a_committed_one(
    served: CapacityServer, write_units: int
) -> None:
    name = served.table(**units(10, write_units))
    doable = put(name, pk="a")
    failing = check(name, "attribute_exists(pk)", {}, pk="none")
    assert cancelled(served.wire, doable, failing) == [NONE, FAILED]
    assert served.metrics("consumed_write_capacity_units", name) == {("",): 4.0}


def test_canceled_transactions_take_the_units_of_the_actions_that_were_possible(
    served: CapacityServer,
) -> None:
    narrow, wide = served.table(**units(10, 10)), served.table(**units(1_000, 1_000))
    both = (put(narrow, pk="a"), check(wide, "attribute_exists(pk)", {}, pk="none"))
    for _ in range(5):
        assert cancelled(served.wire, *both) == [NONE, FAILED]
    assert cancelled(served.wire, *both) == [TABLE_PROVISIONED, FAILED]


@pytest.mark.parametrize("is_last", [True, False])
def test_the_units_of_items_read_with_a_throttled_one_stay_consumed(
    served: CapacityServer, *, is_last: bool
) -> None:
    narrow, wide = served.table(**units(10, 10)), served.table(**units(1_000, 1_000))
    gets = [get(wide, pk="a"), get(narrow, pk="a")]
    request = {"TransactItems": gets if is_last else gets[::-1]}
    done = served.until_refused("TransactGetItems", request)
    assert done == 5
    paid = {("",): 2.0 * (done + 1)}
    assert served.metrics("consumed_read_capacity_units", wide) == paid
    # The next request is throttled before it reads.
    assert served.wire.send("TransactGetItems", request).status == 400
    assert served.metrics("consumed_read_capacity_units", wide) == paid
    assert served.metrics("consumed_read_capacity_units", narrow) == {("",): 10.0}


# -- conflicts ------------------------------------------------------------------------------------


@asynccontextmanager
async def one_held_item() -> AsyncIterator[tuple[InProcessClient, str]]:
    """A table with a transaction that has locked the item ``a``, which does not exist."""
    async with running_database() as database:
        ask = InProcessClient(database)
        name = unique_name()
        status, _ = await ask("CreateTable", definition("pk:S", name=name))
        assert status == 200
        table = database.table(name)
        ((_, action),) = actions((table, Put({"pk": {"S": "a"}}, 3)))
        part = TransactionPart(b"somebody's", 1, (action,))
        await table.send(action.position, Prepare(part))
        try:
            yield ask, name
        finally:
            await table.send(action.position, Release(b"somebody's"), always=True)


async def test_single_writes_of_a_locked_item_are_conflicts() -> None:
    async with one_held_item() as (ask, name):
        key = {"TableName": name, "Key": {"pk": {"S": "a"}}}
        for operation, request in (
            ("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}}}),
            ("DeleteItem", key),
            ("UpdateItem", key),
            ("ExecuteStatement", {"Statement": f"UPDATE \"{name}\" SET v = 1 WHERE pk = 'a'"}),
        ):
            assert await ask(operation, request) == (
                400,
                {
                    "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException",
                    "message": "Transaction is ongoing for the item",
                },
            )
        assert await ask("GetItem", key) == (200, {})
        assert ask.database.table(name).throttle.transaction_conflicts == 4


async def test_batches_return_locked_items_as_unprocessed_and_write_the_others() -> None:
    async with one_held_item() as (ask, name):
        requests = [{"PutRequest": {"Item": {"pk": {"S": pk}}}} for pk in ("a", "b")]
        status, body = await ask("BatchWriteItem", {"RequestItems": {name: requests}})
        assert (status, body) == (200, {"UnprocessedItems": {name: requests[:1]}})
        held = {"RequestItems": {name: requests[:1]}}
        status, body = await ask("BatchWriteItem", held)
        assert (status, body) == (200, {"UnprocessedItems": {name: requests[:1]}})
        statements = [statement(f'UPDATE "{name}" SET v = 1 WHERE pk = ?', pk) for pk in ("a", "b")]
        status, body = await ask("BatchExecuteStatement", {"Statements": statements})
        assert status == 200
        conflict = {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
        assert body["Responses"] == [
            {"Error": conflict, "TableName": name},
            {"TableName": name},
        ]


async def test_transactions_of_a_locked_item_are_canceled() -> None:
    async with one_held_item() as (ask, name):
        conflict = {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
        for action in (
            put(name, pk="a"),
            delete(name, pk="a"),
            update(name, "SET v = :v", {"v": 1}, pk="a"),
            check(name, "attribute_not_exists(pk)", {}, pk="a"),
        ):
            items = [put(name, pk="b"), action]
            status, body = await ask("TransactWriteItems", {"TransactItems": items})
            assert status == 400
            assert body["CancellationReasons"] == [{"Code": "None"}, conflict]
        statements = [
            {"Statement": f"INSERT INTO \"{name}\" VALUE {{'pk': '{pk}'}}"} for pk in ("a", "b")
        ]
        status, body = await ask("ExecuteTransaction", {"TransactStatements": statements})
        assert status == 400
        assert body["CancellationReasons"] == [conflict, {"Code": "None"}]
        status, body = await ask("GetItem", {"TableName": name, "Key": typed({"pk": "b"})})
        assert body == {}

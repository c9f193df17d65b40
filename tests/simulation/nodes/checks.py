"""Checks after the faults of a simulation have ended: nothing is lost, torn, or done twice."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio

from dynactor.api.nodes.node_link import AnswerLost
from tests.simulation.nodes.committed_logs import CommittedLogs
from tests.simulation.nodes.real_nodes import Cluster
from tests.simulation.nodes.stream_readers import StreamReader
from tests.simulation.nodes.table_maker import Backup
from tests.simulation.nodes.workload import TABLES, Workload
from tests.support.clients.wire import Answer
from tests.support.histories import history, history_serial
from tests.support.histories.history import Item
from tests.support.histories.history_bank_requests import get, value_of
from tests.support.histories.history_serial import Value
from tests.support.streams.stream_walk import (
    Ledger,
    Record,
    record_of,
    stream_violations,
    walk,
)

_PAGE: Final = 1_000
_CATCH_UP_SECONDS: Final = 60.0


async def violations(
    cluster: Cluster,
    workload: Workload,
    readers: Sequence[StreamReader] = (),
    logs: CommittedLogs | None = None,
) -> list[str]:
    """The violations of a whole run, whose faults have ended.

    If the streams were trimmed, ``logs`` has their changes.
    """
    found = []
    try:
        with anyio.fail_after(400):
            await _goes_on(cluster)
            for reader in readers:
                await reader.finish()
            found += await _items(workload, logs)
    except TimeoutError:
        found.append("the cluster does not go on")
    return [*cluster.violations, *workload.violations, *found]


async def _goes_on(cluster: Cluster) -> None:
    """Wait until each node answers for each table."""
    for process in cluster.up():
        for table in TABLES:
            body = {"TableName": table, "Item": {"pk": {"S": f"last of {process.name}"}}}
            while True:
                try:
                    answer = await cluster.ask(process, "PutItem", body)
                except AnswerLost:
                    continue
                if answer.status == 200:
                    break
                await anyio.sleep(0.2)


async def _items(workload: Workload, logs: CommittedLogs | None) -> list[str]:
    await _expired(workload)
    for name in list(workload.registers.operations):
        table, _, pk = name.partition("/")
        operation = workload.registers.invoke("last", name, history.Read())
        body = {"TableName": table, "Key": {"pk": {"S": pk}}, "ConsistentRead": True}
        answer = await workload.must("GetItem", body)
        workload.registers.answer(operation, history.Found(answer.get("Item")))
    reads = {}
    transaction = workload.accounts.invoke("last")
    for place in workload.places:
        answer = await workload.must("GetItem", get(place) | {"ConsistentRead": True})
        reads[place.pk] = value_of(answer["Item"])
    workload.accounts.done(transaction, reads)
    found = [f"accounts: {each}" for each in history_serial.check(workload.accounts)]
    found += [f"registers: {each}" for each in history.check(workload.registers)]
    for table in TABLES:
        found += await _table(workload, table, logs)
    for backup in workload.restored:
        found += _restored(workload, backup, reads)
    return found


def _restored(workload: Workload, backup: Backup, last: Mapping[str, Value]) -> list[str]:
    """A restored table has a state of all its items at one moment."""
    found = []
    for pk, value in backup.items.items():
        if last[pk].names[: len(value.names)] != value.names:
            found.append(f"{pk} was restored as {value}, and is {last[pk]}")
        if not backup.before[pk].issubset(value.names):
            lost = backup.before[pk].difference(value.names)
            found.append(f"{pk} was restored without {sorted(lost)}")
    for transaction in workload.accounts.transactions:
        of_table = transaction.writes.keys() & backup.before.keys()
        there = {pk for pk in of_table if transaction.name in backup.items[pk].names}
        if there and there != of_table:
            found.append(f"{transaction.name} was restored only in {sorted(there)}")
    if backup.items.keys() != backup.before.keys():
        found.append(f"accounts of {backup.table} were not restored")
    return found


async def _expired(workload: Workload) -> None:
    """Wait until all expired items are deleted."""
    for (table, pk), at in workload.expiring.items():
        body = {"TableName": table, "Key": {"pk": {"S": pk}}, "ConsistentRead": True}
        while at < time.time() + 5_000:
            if not await workload.must("GetItem", body):
                break
            await anyio.sleep(0.5)


async def _table(workload: Workload, table: str, logs: CommittedLogs | None) -> list[str]:
    items = await _scan(workload, table, None)
    by_name = {f"{table}/{item['pk']['S']}": item for item in items}
    found = [
        f"{table} lacks {pk}"
        for (of_table, pk), at in workload.expiring.items()
        if of_table == table and at > time.time() + 5_000 and f"{table}/{pk}" not in by_name
    ]
    expected = _sorted(item for item in items if "group" in item)
    give_up_at = time.time() + _CATCH_UP_SECONDS
    while (rows := _sorted(await _scan(workload, table, "by_group"))) != expected:
        if time.time() > give_up_at:
            missing = [row for row in expected if row not in rows]
            extra = [row for row in rows if row not in expected]
            found.append(f"{table}/by_group lacks {missing}, and has also {extra}")
            break
        await anyio.sleep(1)
    records = await _records(workload, table, logs)
    registers = {
        name: operations
        for name, operations in workload.registers.operations.items()
        if name.startswith(f"{table}/")
    }
    of_registers = [record for record in records if record.name in registers]
    others = [record for record in records if record.name not in registers]
    found += Ledger().violations(
        of_registers,
        {},
        registers,
        {name: item for name, item in by_name.items() if name in registers},
    )
    found += stream_violations(
        others, {name: item for name, item in by_name.items() if name not in registers}
    )
    return [f"{table}: {each}" for each in found]


async def _records(workload: Workload, table: str, logs: CommittedLogs | None) -> list[Record]:
    """All changes of a table, in the order of its stream."""

    def name_of(key: Item) -> str:
        return f"{table}/{key['pk']['S']}"

    if logs is not None:
        return [record_of(record, name_of) for record in logs.records(table)]
    described = await workload.must("DescribeTable", {"TableName": table})
    arn = described["Table"]["LatestStreamArn"]
    connection: Any = _Connection(workload)
    return await walk(connection, arn, name_of)


def _sorted(items: Any) -> list[Item]:
    return sorted(items, key=lambda item: str(item["pk"]))


async def _scan(workload: Workload, table: str, index: str | None) -> list[Item]:
    body: dict[str, Any] = {"TableName": table}
    if index is None:
        body["ConsistentRead"] = True
    else:
        body["IndexName"] = index
    items: list[Item] = []
    while True:
        answer = await workload.must("Scan", body)
        items += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return items
        body["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


class _Connection:
    """Sends requests to any node."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload

    async def call(self, operation: str, body: dict[str, Any], service: str) -> Answer:
        return Answer(200, await self._workload.must(operation, body, service))

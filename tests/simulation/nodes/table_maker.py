"""Clients that create, change, back up, restore and delete tables.

Each is the only client of its table. A request of unknown outcome may be executed late, so the
table gets another name after such a request.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import anyio

from tests.simulation.nodes.workload import TABLES, Workload, index_body, table_body
from tests.support.clients.wire import Answer
from tests.support.histories.history import Item
from tests.support.histories.history_bank_requests import value_of
from tests.support.histories.history_serial import Value

_SECONDS: Final = 900.0
_PAUSE_SECONDS: Final = 0.3


class TableMaker:
    """Makes one table again and again, and compares it with the writes that were acknowledged."""

    def __init__(self, workload: Workload, table: str, draw: Random) -> None:
        self._workload = workload
        self._table = table
        self._draw = draw
        self._written: dict[str, Item] = {}
        self._unknown: set[str] = set()
        self._may_be_late = False

    async def run(self) -> None:
        """Make the table until the other clients have sent enough requests."""
        while not self._workload.is_enough:
            await self._make()
            await anyio.sleep(self._draw.random() * 3)

    async def _make(self) -> None:
        self._written, self._unknown = {}, set()
        if self._may_be_late:
            self._table = f"passing-{self._workload.name()}"
            self._may_be_late = False
        body = table_body(self._table) | {"GlobalSecondaryIndexes": [index_body("by_group")]}
        await self._until("CreateTable", body, "ResourceInUseException")
        await self._workload.wait_active(self._table)
        self._compare("new", await self._items())
        await self._put(self._draw.randrange(4))
        if self._draw.random() < 0.5:
            await self._add_index()
        await self._put(self._draw.randrange(3))
        if self._draw.random() < 0.4:
            await self._restore()
        self._compare("old", await self._items())
        await self._delete(self._table)

    async def _put(self, count: int) -> None:
        for _ in range(count):
            name = self._workload.name()
            item: Item = {"pk": {"S": name}, "group": {"S": "red"}}
            body = {"TableName": self._table, "Item": item}
            answer = await self._workload.ask("PutItem", body)
            if answer is not None and answer.status == 200:
                self._written[name] = item
            elif answer is None or answer.status == 500:
                self._unknown.add(name)
                self._may_be_late = True
            else:
                self._fail(f"{answer} to {body}")

    async def _add_index(self) -> None:
        body = {
            "TableName": self._table,
            "AttributeDefinitions": [{"AttributeName": "group", "AttributeType": "S"}],
            "GlobalSecondaryIndexUpdates": [{"Create": index_body("added")}],
        }
        # The index is there if an earlier attempt was executed.
        await self._until("UpdateTable", body, "ValidationException")
        with anyio.fail_after(_SECONDS):
            while True:
                described = await self._workload.must("DescribeTable", {"TableName": self._table})
                indexes = described["Table"]["GlobalSecondaryIndexes"]
                if [each["IndexStatus"] for each in indexes] == ["ACTIVE"] * 2:
                    break
                await anyio.sleep(_PAUSE_SECONDS)
            items = await self._items()
            while await self._items("added") != items:
                await anyio.sleep(_PAUSE_SECONDS)

    async def _restore(self) -> None:
        """Restore a backup into another table."""
        arn = await self._back_up(self._table)
        target = f"restored-{self._workload.name()}"
        await self._until(
            "RestoreTableFromBackup",
            {"BackupArn": arn, "TargetTableName": target},
            "TableAlreadyExistsException",
        )
        await self._workload.wait_active(target, _SECONDS)
        self._compare("restored", await self._items(table=target))
        await self._delete(target)
        await self._until("DeleteBackup", {"BackupArn": arn}, "BackupNotFoundException")

    async def _back_up(self, table: str) -> str:
        return await back_up(self._workload, table)

    async def _items(self, index: str | None = None, *, table: str = "") -> dict[str, Item]:
        body: dict[str, Any] = {"TableName": table or self._table}
        body |= {"ConsistentRead": True} if index is None else {"IndexName": index}
        items = (await self._workload.must("Scan", body))["Items"]
        return {item["pk"]["S"]: item for item in items}

    def _compare(self, what: str, items: dict[str, Item]) -> None:
        missing = self._written.keys() - items.keys()
        extra = items.keys() - self._written.keys() - self._unknown
        if missing or extra:
            self._fail(f"the {what} table lacks {sorted(missing)}, and has also {sorted(extra)}")

    async def _until(self, operation: str, body: dict[str, Any], already: str) -> None:
        self._may_be_late |= await until_done(self._workload, operation, body, already)

    async def _delete(self, table: str) -> None:
        self._may_be_late |= await delete(
            self._workload, table, may_be_created_late=self._may_be_late
        )

    def _fail(self, text: str) -> None:
        self._workload.violations.append(f"{self._table}: {text}")


class Backup:
    """A restored table of accounts, and the writes that were acknowledged before its backup."""

    def __init__(self, table: str, before: dict[str, set[str]], items: dict[str, Value]) -> None:
        self.table = table
        self.before = before
        self.items = items


async def restore_accounts(workload: Workload, draw: Random) -> None:
    """Restore a table with accounts while they are written; ``workload.restored`` has the items."""
    while not workload.is_enough:
        await anyio.sleep(draw.random() * 20)
        table = draw.choice(TABLES)
        before: dict[str, set[str]] = {
            place.pk: set() for place in workload.places if place.table == table
        }
        for transaction in workload.accounts.transactions:
            for pk in transaction.writes.keys() & before.keys():
                if transaction.state == "done":
                    before[pk].add(transaction.name)
        arn = await back_up(workload, table)
        target = f"restored-{workload.name()}"
        body = {"BackupArn": arn, "TargetTableName": target}
        is_unknown = await until_done(
            workload, "RestoreTableFromBackup", body, "TableAlreadyExistsException"
        )
        await workload.wait_active(target, _SECONDS)
        answer = await workload.must("Scan", {"TableName": target, "ConsistentRead": True})
        items = {item["pk"]["S"]: value_of(item) for item in answer["Items"] if "names" in item}
        workload.restored.append(Backup(table, before, items))
        await delete(workload, target, may_be_created_late=is_unknown)


async def back_up(workload: Workload, table: str) -> str:
    """Back up a table; return the backup's ARN."""
    with anyio.fail_after(_SECONDS):
        while True:
            body = {"TableName": table, "BackupName": workload.name() + "-backup"}
            answer = await workload.ask("CreateBackup", body)
            if answer is not None and answer.status == 200:
                arn: str = answer.body["BackupDetails"]["BackupArn"]
                while True:
                    answer = await workload.ask("DescribeBackup", {"BackupArn": arn})
                    if answer is not None and answer.error == "BackupNotFoundException":
                        # Its copy has failed.
                        break
                    if answer is not None and answer.status == 200:
                        details = answer.body["BackupDescription"]["BackupDetails"]
                        if details["BackupStatus"] == "AVAILABLE":
                            return arn
                    await anyio.sleep(_PAUSE_SECONDS)
            elif answer is not None and answer.status == 400 and not _is_busy(answer):
                workload.violations.append(f"{answer} to {body}")
                raise AssertionError(answer)
            await anyio.sleep(_PAUSE_SECONDS)
    raise AssertionError


async def until_done(
    workload: Workload,
    operation: str,
    body: dict[str, Any],
    already: str,
    *,
    may_be_done: bool = False,
) -> bool:
    """Repeat a request until it succeeds, or until an error says that it was done before.

    With ``may_be_done``, the first attempt may get that error too. Return whether the outcome of an
    attempt is unknown.
    """
    tries = 0
    is_unknown = False
    with anyio.fail_after(_SECONDS):
        while True:
            answer = await workload.ask(operation, body)
            tries += 1
            if answer is not None and answer.status == 200:
                return is_unknown
            if answer is not None and answer.error == already and (tries > 1 or may_be_done):
                return is_unknown
            if answer is not None and answer.status == 400 and not _is_busy(answer):
                workload.violations.append(f"{answer} to {operation} {body}")
                return is_unknown
            is_unknown |= answer is None or answer.status == 500
            await anyio.sleep(_PAUSE_SECONDS)
    raise AssertionError


async def delete(workload: Workload, table: str, *, may_be_created_late: bool) -> bool:
    """Delete a table, and wait until it is gone; return whether an attempt's outcome is unknown.

    With ``may_be_created_late``, a request of unknown outcome may create the table again.
    """
    body = {"TableName": table}
    is_unknown = is_done = False
    with anyio.fail_after(_SECONDS):
        while not is_done:
            is_unknown |= await until_done(
                workload, "DeleteTable", body, "ResourceNotFoundException", may_be_done=is_unknown
            )
            is_done = await _is_gone(workload, body, may_be_created_late=may_be_created_late)
    return is_unknown


async def _is_gone(workload: Workload, body: dict[str, Any], *, may_be_created_late: bool) -> bool:
    """Wait until a table is gone; return false if it was created again."""
    while True:
        answer = await workload.ask("DescribeTable", body)
        if answer is not None and answer.error == "ResourceNotFoundException":
            return True
        is_active = (
            answer is not None
            and answer.status == 200
            and answer.body["Table"]["TableStatus"] == "ACTIVE"
        )
        if is_active and may_be_created_late:
            return False
        await anyio.sleep(_PAUSE_SECONDS)


def _is_busy(answer: Answer) -> bool:
    """Whether the request may succeed later."""
    return answer.error in (
        "ResourceInUseException",
        "TableInUseException",
        "BackupInUseException",
        "LimitExceededException",
        "ThrottlingException",
    )

"""Clients that write at random to several tables with time to live, across crashes of servers.

The clients record every answer in a history, and continue with another server after a kill. There
are three kinds of items. Permanent items never expire, so only clients delete them. Expire-only
items are put once with an expiry time and never deleted by clients, so only time to live deletes
them. Mixed items are deleted by clients and also expire; the history distinguishes the two.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import count, cycle
from random import Random
from typing import Any, Final, TypeAlias

from tests.support.clients.wire import Answer, Connection, ConnectionLost
from tests.support.histories.history import (
    TOKEN,
    Delete,
    Done,
    History,
    Item,
    Operation,
    Put,
    Unanswered,
    Update,
)
from tests.support.kafka.kafka_consumer import canonical
from tests.support.writers.writers import is_refused

EXPIRES: Final = "expires"
WRITER_COUNT: Final = 32

_OWN_ITEMS: Final = 6
_SHARED_ITEMS: Final = 12
_EXPIRE_ONLY: Final = "expire-only"
_PERMANENT: Final = "permanent"

_Write: TypeAlias = Put | Update | Delete


def table_definition(table: str) -> dict[str, Any]:
    """CreateTable's body."""
    return {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
        ],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
    }


def place_name(table: str, keys: Item) -> str:
    """The name of an item in the history."""
    return f"{table}/{canonical(keys)}"


def may_expire(keys: Item) -> bool:
    """Whether clients give the item an expiry time."""
    return not keys["sk"]["S"].startswith(_PERMANENT)


def may_be_deleted(keys: Item) -> bool:
    """Whether clients delete the item."""
    return not keys["sk"]["S"].startswith(_EXPIRE_ONLY)


class ExpiringWriters:
    """Many writers, each with its own connection to one of the current servers.

    ``writes`` counts the requests sent, answered or not; a batch counts as many as it has requests.
    ``pause_seconds`` is the longest pause of a writer before a request. A batch has several tables
    if ``mixes_tables``; a cluster would give these tables one home.
    """

    def __init__(
        self,
        tables: Sequence[str],
        draw: Random,
        size: int = WRITER_COUNT,
        *,
        pause_seconds: float = 0.0,
        mixes_tables: bool = True,
    ) -> None:
        self.history = History()
        self.tables = tables
        self.writes = 0
        self.unanswered = 0
        self.pause_seconds = pause_seconds
        self.mixes_tables = mixes_tables
        # The numbers of the writers' tokens, which are unique over all calls of ``run``.
        self.tokens = count(1)
        self._draw = draw
        self._size = size
        self._stopping = False
        self._addresses: tuple[tuple[str, int], ...] = ()
        self._turns: Iterator[tuple[str, int]] = iter(())
        self._served = asyncio.Event()
        self._waiting: dict[asyncio.Event, int] = {}

    async def run(self) -> None:
        """Write until stopped."""
        self._stopping = False
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._size):
                tasks.create_task(self.client(number).run())

    def client(self, number: int) -> ExpiringClient:
        """One of the clients."""
        return ExpiringClient(self, number, Random(self._draw.random()))

    def use_servers(self, *addresses: tuple[str, int]) -> None:
        """Set the addresses of the current servers; none while no server runs."""
        self._addresses = addresses
        self._turns = cycle(addresses)
        if addresses:
            self._served.set()
        else:
            self._served.clear()

    def stop(self) -> None:
        """Let each writer end after its current write."""
        self._stopping = True
        self._served.set()

    async def wait_writes(self, more: int) -> None:
        """Wait until the clients have sent this many more writes."""
        enough = asyncio.Event()
        self._waiting[enough] = self.writes + more
        await enough.wait()

    @property
    def is_stopping(self) -> bool:
        """Whether ``stop`` was called."""
        return self._stopping

    async def wait_server(self) -> tuple[str, int] | None:
        """Wait until a server runs, and return the address of the next; None after ``stop``."""
        while not self._addresses and not self._stopping:
            await self._served.wait()
        return None if self._stopping else next(self._turns)

    def count(self, writes: int) -> None:
        """Count writes that were sent."""
        self.writes += writes
        for enough, goal in list(self._waiting.items()):
            if self.writes >= goal:
                del self._waiting[enough]
                enough.set()


class ExpiringClient:
    """One client: one request at a time."""

    def __init__(self, writers: ExpiringWriters, number: int, draw: Random) -> None:
        self._writers = writers
        self._history = writers.history
        self._name = f"client{number}"
        self._draw = draw

    async def run(self) -> None:
        """Write until stopped."""
        while address := await self._writers.wait_server():
            try:
                connection = await Connection.open(*address)
            except ConnectionLost:
                # The server has just ended, and ``use_servers`` is about to be called.
                await asyncio.sleep(0)
                continue
            try:
                while not self._writers.is_stopping:
                    if self._writers.pause_seconds:
                        pause = self._draw.uniform(0, self._writers.pause_seconds)
                        await asyncio.sleep(pause)
                    (step,) = self._draw.choices(
                        (self._write, self._batch, self._put_expire_only), (8, 1, 1)
                    )
                    await step(connection)
            except ConnectionLost:
                continue
            finally:
                await connection.close()

    async def _write(self, connection: Connection) -> None:
        table, keys = self._place()
        kind = self._draw.random()
        body: dict[str, Any] = {"TableName": table, "ReturnValues": "ALL_OLD"}
        write: _Write
        if kind < 0.5:
            write = Put(keys | self._attributes(keys))
            operation, body["Item"] = "PutItem", write.item
        elif kind < 0.8:
            write = self._update(keys)
            operation = "UpdateItem"
            body |= {"Key": keys, **_update_members(write)}
        else:
            write = Delete()
            operation, body["Key"] = "DeleteItem", keys
        noted = self._history.invoke(self._name, place_name(table, keys), write)
        answer = await self._ask(connection, operation, body, 1)
        self._note(place_name(table, keys), noted, answer, Done("ALL_OLD", _old_image(answer)))

    async def _put_expire_only(self, connection: Connection) -> None:
        """Put an item that is expired or soon expires, and is never written again."""
        await self.put_new(
            connection, self._draw.choice(self._writers.tables), expires=self._expiry()
        )

    async def put_new(
        self, connection: Connection, table: str, *, expires: dict[str, str] | None
    ) -> Item | None:
        """Put an item that is never written again; return it if the put was acknowledged.

        Raises:
            ConnectionLost: no answer arrived.
        """
        token = self._token()
        keys = {"pk": {"S": token}, "sk": {"S": _EXPIRE_ONLY if expires else _PERMANENT}}
        item = {**keys, TOKEN: {"S": token}, **({EXPIRES: expires} if expires else {})}
        noted = self._history.invoke(self._name, place_name(table, keys), Put(item))
        body = {"TableName": table, "Item": item}
        answer = await self._ask(connection, "PutItem", body, 1)
        self._note(place_name(table, keys), noted, answer, Done())
        return item if answer.status == 200 else None

    async def _batch(self, connection: Connection) -> None:
        """BatchWriteItem: independent writes, by default to several tables."""
        table = None if self._writers.mixes_tables else self._draw.choice(self._writers.tables)
        places = {place_name(*place): place for place in (self._place(table) for _ in range(4))}
        writes = [
            (name, table, keys, Delete() if at == 0 else Put(keys | self._attributes(keys)))
            for at, (name, (table, keys)) in enumerate(places.items())
        ]
        noted = [self._history.invoke(self._name, name, write) for name, _, _, write in writes]
        requests: dict[str, list[dict[str, Any]]] = {}
        for _, table, keys, write in writes:
            requests.setdefault(table, []).append(
                {"PutRequest": {"Item": write.item}}
                if isinstance(write, Put)
                else {"DeleteRequest": {"Key": keys}}
            )
        body = {"RequestItems": requests}
        answer = await self._ask(connection, "BatchWriteItem", body, len(writes))
        left = answer.body.get("UnprocessedItems", {})
        for operation, (name, table, keys, write) in zip(noted, writes, strict=True):
            request = (
                {"PutRequest": {"Item": write.item}}
                if isinstance(write, Put)
                else {"DeleteRequest": {"Key": keys}}
            )
            if request in left.get(table, ()):
                self._history.withdraw(name, operation)
            else:
                self._note(name, operation, answer, Done())

    async def _ask(
        self, connection: Connection, operation: str, body: dict[str, Any], writes: int
    ) -> Answer:
        self._writers.count(writes)
        try:
            return await connection.call(operation, body)
        except ConnectionLost:
            self._writers.unanswered += writes
            raise

    def _note(self, name: str, operation: Operation, answer: Answer, outcome: Done) -> None:
        if answer.status == 200:
            self._history.answer(operation, outcome)
        elif is_refused(answer):
            self._history.withdraw(name, operation)
        else:
            assert answer.status == 500, answer
            assert "unknown" in answer.body["message"], answer
            self._writers.unanswered += 1
            self._history.answer(operation, Unanswered())

    def _place(self, table: str | None = None) -> tuple[str, Item]:
        table = table or self._draw.choice(self._writers.tables)
        if self._draw.random() < 0.2:
            pk, number = "shared", self._draw.randrange(_SHARED_ITEMS)
        else:
            pk, number = self._name, self._draw.randrange(_OWN_ITEMS)
        kind = _PERMANENT if number % 2 else "mixed"
        return table, {"pk": {"S": pk}, "sk": {"S": f"{kind}{number}"}}

    def _attributes(self, keys: Item) -> Item:
        token = self._token()
        size = self._draw.choices((40, 400, 8_000), weights=(70, 28, 2))[0]
        attributes: Item = {
            TOKEN: {"S": token},
            "payload": {"S": "x" * self._draw.randrange(size)},
            "list": {"L": [{"N": str(self._draw.randrange(1_000))}, {"BOOL": True}]},
        }
        if may_expire(keys) and self._draw.random() < 0.2:
            attributes[EXPIRES] = self._expiry()
        return attributes

    def _update(self, keys: Item) -> Update:
        sets = {name: value for name, value in self._attributes(keys).items() if name != "list"}
        # Half of the updates remove the expiry time, possibly of an item that is about to expire.
        is_saved = EXPIRES not in sets and self._draw.random() < 0.5
        return Update(keys, sets, (EXPIRES,) if is_saved else (), ("n",))

    def _expiry(self) -> dict[str, str]:
        return {"N": str(int(time.time()) + self._draw.randrange(-2, 2))}

    def _token(self) -> str:
        return f"{self._name}.{next(self._writers.tokens)}"


def _old_image(answer: Answer) -> Item | None:
    return answer.body.get("Attributes") if answer.status == 200 else None


def _update_members(update: Update) -> dict[str, Any]:
    """The parameters of UpdateItem for an update; ``history.apply`` defines its effect."""
    names = {f"#{name}": name for name in (*update.sets, *update.removes, *update.counts)}
    values = {f":{name}": value for name, value in update.sets.items()} | {":one": {"N": "1"}}
    clauses = ["SET " + ", ".join(f"#{name} = :{name}" for name in update.sets), "ADD #n :one"]
    if update.removes:
        clauses.append("REMOVE " + ", ".join(f"#{name}" for name in update.removes))
    return {
        "UpdateExpression": " ".join(clauses),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }

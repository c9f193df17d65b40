"""Clients that send every kind of request, and disconnect at random moments or read the answer.

Each item is written once, under its own key. At the end every acknowledged item must exist. Any
other item must either exist with its index entries or be missing, and so must both items of a
transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

from tests.support.clients.raw_http import TO_FULL_LANE, RawAnswer, RawConnection, raw_connection
from tests.support.clients.wire import encode, request_bytes
from tests.support.tables.tables import definition, global_index, local_index

TABLES: Final = ("left-table", "right-table")
INDEXES: Final = ("by-local", "by-global")

_MOST_TURNS: Final = 40
_LARGE_CHARACTERS: Final = 90_000
_BATCH_ITEMS: Final = 6
# Errors that a request may get because another request is in progress.
_REFUSALS: Final = ("LimitExceeded", "ResourceInUse", "ResourceNotFound", "TransactionInProgress")


class Wanted(NamedTuple):
    """A request, and the table and key of each item that it writes.

    With ``is_whole`` it writes all items or none.
    """

    operation: str
    body: dict[str, Any]
    written: tuple[tuple[str, str], ...] = ()
    is_whole: bool = False
    service: str = "DynamoDB"


class ClientLog:
    """The answers to all clients, and the items that they tried to write."""

    def __init__(self) -> None:
        self.answered: set[tuple[str, str]] = set()
        self.tried: set[tuple[str, str]] = set()
        self.transactions: list[tuple[tuple[str, str], ...]] = []
        self.backups: list[str] = []
        self.vanished = 0
        # When a server closes, asyncio forgets accepted connections and leaves them open (Python
        # 3.11), so no client connects then.
        self.may_connect = True
        self._answers = 0
        self._wanted_answers = 0
        self._enough = asyncio.Event()

    def note_answer(self) -> None:
        """Count an answer."""
        self._answers += 1
        if self._answers == self._wanted_answers:
            self._enough.set()

    async def more_answers(self, count: int) -> None:
        """Wait until this many more answers arrived."""
        self._wanted_answers = self._answers + count
        self._enough.clear()
        await self._enough.wait()


def table_definitions() -> list[dict[str, Any]]:
    """The definitions of the tables."""
    return [
        definition(
            "pk:S",
            "sk:S",
            "number:N",
            name=name,
            indexes=(local_index("by-local", "pk", "number"),),
            GlobalSecondaryIndexes=[global_index("by-global", "sk", "number")],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        for name in TABLES
    ]


class VanishingClient:
    """One client, which sends one request after another, and reconnects after it disconnected."""

    def __init__(
        self,
        name: str,
        endpoint: str,
        admin_endpoint: str,
        iterators: list[str],
        *,
        log: ClientLog,
        draw: Random,
    ) -> None:
        self._name = name
        self._endpoint = endpoint
        self._admin_endpoint = admin_endpoint
        self._iterators = iterators
        self._log = log
        self._draw = draw
        self._made = 0
        self._kinds: list[Callable[[], Wanted]] = [
            *[self._put] * 4,
            *[self._batch] * 4,
            *[self._transaction] * 5,
            *[self._statement, self._statements] * 2,
            *[self._large_put] * 2,
            *[self._query, self._scan, self._batch_get, self._transact_get] * 2,
            *[self._records] * 3,
            self._create_table,
            self._update_table,
        ]

    async def run(self, requests: int) -> None:
        """Send this many requests, or fewer if the server stops."""
        left = requests
        while left > 0 and self._log.may_connect:
            try:
                async with raw_connection(self._endpoint) as connection:
                    stays = True
                    while stays and left > 0:
                        left -= 1
                        wanted = self._draw.choice(self._kinds)()
                        stays = await self._ask(connection, wanted)
                if self._draw.random() < 0.03:
                    await self._back_up()
            except (ConnectionRefusedError, ConnectionResetError):
                return

    async def _ask(self, connection: RawConnection, wanted: Wanted) -> bool:
        """Send a request; return whether client and server keep the connection."""
        log, draw = self._log, self._draw
        log.tried.update(wanted.written)
        if wanted.is_whole:
            log.transactions.append(wanted.written)
        data = request_bytes(wanted.operation, encode(wanted.body), wanted.service)
        if draw.random() < 0.3:
            data = data.replace(b"\r\n", f"\r\n{TO_FULL_LANE}\r\n".encode(), 1)
        if draw.random() < 0.5:
            return await self._vanish(connection, data)
        is_last = draw.random() < 0.1
        connection.send(data)
        try:
            if is_last:
                connection.writer.write_eof()
            answer = await connection.answer()
        except (asyncio.IncompleteReadError, OSError):
            # The server is stopping.
            return False
        self._note(wanted, answer)
        return not is_last

    async def _vanish(self, connection: RawConnection, data: bytes) -> bool:
        """Send a request or a part of it, and disconnect before or during the answer."""
        self._log.vanished += 1
        if self._draw.random() < 0.3:
            data = data[: self._draw.randrange(len(data))]
        elif self._draw.random() < 0.3:
            data += request_bytes("ListTables", b"{}")
        connection.send(data)
        for _ in range(self._draw.randrange(_MOST_TURNS)):
            await asyncio.sleep(0)
        if self._draw.random() < 0.5:
            connection.reset_when_closed()
        return False

    async def _back_up(self) -> None:
        name = self._new_key().replace(" ", "-")
        body = encode({"name": name})
        async with raw_connection(self._admin_endpoint) as connection:
            connection.send(
                b"POST /backups HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"X-Dynactor-Admin: 1\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            if self._draw.random() < 0.5:
                for _ in range(self._draw.randrange(_MOST_TURNS)):
                    await asyncio.sleep(0)
                return
            try:
                answer = await connection.answer()
            except (asyncio.IncompleteReadError, ConnectionResetError):
                return
        assert answer.status == 201, answer
        self._log.backups.append(name)

    def _note(self, wanted: Wanted, answer: RawAnswer) -> None:
        self._log.note_answer()
        if answer.status == 200:
            assert not answer.json.get("UnprocessedItems")
            assert not any("Error" in each for each in answer.json.get("Responses", ()))
            self._log.answered.update(wanted.written)
            return
        assert answer.status == 400, answer
        kind = answer.json["__type"].partition("#")[2]
        is_conflict = (
            wanted.operation == "TransactGetItems" and kind == "TransactionCanceledException"
        )
        assert is_conflict or kind.startswith(_REFUSALS), answer

    # -- random requests ----------------------------------------------------------------------

    def _new_key(self) -> str:
        self._made += 1
        return f"{self._name} {self._made}"

    def _item(self, pk: str, **more: Any) -> dict[str, Any]:
        number = {"N": str(self._draw.randrange(100))}
        return {"pk": {"S": pk}, "sk": {"S": "same"}, "number": number, **more}

    def _put(self, **more: Any) -> Wanted:
        table, pk = self._draw.choice(TABLES), self._new_key()
        body = {"TableName": table, "Item": self._item(pk, **more)}
        return Wanted("PutItem", body, ((table, pk),))

    def _large_put(self) -> Wanted:
        return self._put(text={"S": "x" * _LARGE_CHARACTERS})

    def _batch(self) -> Wanted:
        written = tuple((self._draw.choice(TABLES), self._new_key()) for _ in range(_BATCH_ITEMS))
        puts: dict[str, list[Any]] = {}
        for table, pk in written:
            puts.setdefault(table, []).append({"PutRequest": {"Item": self._item(pk)}})
        return Wanted("BatchWriteItem", {"RequestItems": puts}, written)

    def _transaction(self) -> Wanted:
        """A transaction that puts one item, or one item in each table."""
        pk = self._new_key()
        tables = self._draw.choice((TABLES, TABLES[:1]))
        actions = [
            {
                "Put": {
                    "TableName": table,
                    "Item": self._item(pk),
                    # A second execution would fail.
                    "ConditionExpression": "attribute_not_exists(pk)",
                }
            }
            for table in tables
        ]
        body: dict[str, Any] = {"TransactItems": actions}
        if self._draw.random() < 0.7:
            body["ClientRequestToken"] = pk
        written = tuple((table, pk) for table in tables)
        return Wanted("TransactWriteItems", body, written, is_whole=True)

    def _statement(self) -> Wanted:
        pk = self._new_key()
        statements = [
            {"Statement": f"INSERT INTO \"{table}\" VALUE {{'pk': '{pk}', 'sk': 's', 'number': 1}}"}
            for table in TABLES
        ]
        body = {"TransactStatements": statements}
        return Wanted(
            "ExecuteTransaction", body, tuple((table, pk) for table in TABLES), is_whole=True
        )

    def _statements(self) -> Wanted:
        written = tuple((table, self._new_key()) for table in TABLES)
        statements = [
            {"Statement": f"INSERT INTO \"{table}\" VALUE {{'pk': '{pk}', 'sk': 's', 'number': 1}}"}
            for table, pk in written
        ]
        return Wanted("BatchExecuteStatement", {"Statements": statements}, written)

    def _query(self) -> Wanted:
        body = {
            "TableName": self._draw.choice(TABLES),
            "IndexName": "by-global",
            "KeyConditionExpression": "sk = :same",
            "ExpressionAttributeValues": {":same": {"S": "same"}},
        }
        return Wanted("Query", body)

    def _scan(self) -> Wanted:
        return Wanted("Scan", {"TableName": self._draw.choice(TABLES), "ConsistentRead": True})

    def _keys(self) -> list[dict[str, Any]]:
        return [
            {"pk": {"S": f"{self._name} {number}"}, "sk": {"S": "same"}}
            for number in range(1, _BATCH_ITEMS)
        ]

    def _batch_get(self) -> Wanted:
        wanted = {table: {"Keys": self._keys(), "ConsistentRead": True} for table in TABLES}
        return Wanted("BatchGetItem", {"RequestItems": wanted})

    def _transact_get(self) -> Wanted:
        gets = [
            {"Get": {"TableName": table, "Key": key}} for table in TABLES for key in self._keys()
        ]
        return Wanted("TransactGetItems", {"TransactItems": gets})

    def _records(self) -> Wanted:
        body = {"ShardIterator": self._draw.choice(self._iterators)}
        return Wanted("GetRecords", body, service="DynamoDBStreams")

    def _create_table(self) -> Wanted:
        name = self._new_key().replace(" ", "-")
        return Wanted("CreateTable", definition("pk:S", name=name))

    def _update_table(self) -> Wanted:
        is_protected = self._draw.random() < 0.5
        table = self._draw.choice(TABLES)
        return Wanted(
            "UpdateTable", {"TableName": table, "DeletionProtectionEnabled": is_protected}
        )

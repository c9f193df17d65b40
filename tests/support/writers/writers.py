"""Many concurrent clients that write at random, and record every answer in a history.

Each client has items of its own. All clients share some items, and write these on the condition
that the item is unchanged since they read it. One write sets several attributes, so an item shows a
write that was applied in part. Local indexes of every projection show an index that differs from
its table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tests.support.clients.wire import Answer, Connection, ConnectionLost
from tests.support.histories.history import (
    TOKEN,
    Anything,
    Delete,
    Done,
    Expected,
    Found,
    History,
    Images,
    Item,
    Operation,
    Outcome,
    Put,
    Read,
    Refused,
    State,
    Unanswered,
    Update,
)

T = TypeVar("T")
Write: TypeAlias = Put | Update | Delete

WRITER_COUNT = 32
_OWN_ITEMS = 6
_SHARED_COLLECTIONS = 3
_SHARED_ITEMS = 4

_THROTTLED = ("ThrottlingException", "ProvisionedThroughputExceededException")


class Index(NamedTuple):
    """A local secondary index of one of the tables."""

    table: str
    name: str
    sort: str
    sort_type: str
    projection: dict[str, Any]

    def project(self, item: Item) -> State:
        """The entry of an item in the index by DynamoDB's rules; None without an entry."""
        if self.sort not in item:
            return None
        if self.projection["ProjectionType"] == "ALL":
            return item
        names = {"pk", "sk", self.sort, *self.projection.get("NonKeyAttributes", ())}
        return {name: value for name, value in item.items() if name in names}


ALL = {"ProjectionType": "ALL"}
KEYS_ONLY = {"ProjectionType": "KEYS_ONLY"}
SOME = {"ProjectionType": "INCLUDE", "NonKeyAttributes": [TOKEN, "n"]}

TABLES = ("crash-a", "crash-b")
TEMPORARY_TABLES = ("passing-a", "passing-b", "passing-c")
INDEXES = (
    Index("crash-a", "by_rank", "rank", "N", ALL),
    Index("crash-a", "by_title", "title", "S", SOME),
    Index("crash-b", "by_rank", "rank", "N", KEYS_ONLY),
    Index("crash-b", "by_title", "title", "S", ALL),
)
PROJECTIONS: dict[str, Callable[[Item], State]] = {
    f"{index.table}/{index.name}": index.project for index in INDEXES
}


class Place(NamedTuple):
    """The table and the primary key of an item."""

    table: str
    pk: str
    sk: str

    @property
    def name(self) -> str:
        """The name of the item in the history."""
        return f"{self.table}/{self.pk}/{self.sk}"

    @property
    def key(self) -> Item:
        """The item's primary key."""
        return {"pk": {"S": self.pk}, "sk": {"S": self.sk}}


def create_table(table: str) -> dict[str, Any]:
    """CreateTable's body for one of the two tables."""
    return {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in (("pk", "S"), ("sk", "S"), ("rank", "N"), ("title", "S"))
        ],
        "KeySchema": _key_schema("sk"),
        "LocalSecondaryIndexes": [
            {
                "IndexName": index.name,
                "KeySchema": _key_schema(index.sort),
                "Projection": index.projection,
            }
            for index in INDEXES
            if index.table == table
        ],
    }


def _key_schema(sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


def all_places(size: int = WRITER_COUNT) -> list[Place]:
    """The places of all items that these writers may put."""
    collections = {f"writer{number}": _OWN_ITEMS for number in range(size)}
    collections |= {f"shared{number}": _SHARED_ITEMS for number in range(_SHARED_COLLECTIONS)}
    return [
        Place(table, pk, f"{number}")
        for table in TABLES
        for pk, count in collections.items()
        for number in range(count)
    ]


class Writers:
    """Many writers on one server, each on its own connection, until the server ends."""

    def __init__(
        self, history: History, draw: Random, size: int = WRITER_COUNT, *, reads_only: bool = False
    ) -> None:
        self.history = history
        self.reads_only = reads_only
        self.answers = 0
        self.refusals = 0
        self.unknown_outcomes = 0
        self.stopping = False
        self._draw = draw
        self._size = size
        self._enough = asyncio.Event()
        self._limit = 0

    async def run(self, host: str, port: int) -> None:
        """Send requests until the server has ended or ``stopping`` is set."""
        connections = [await Connection.open(host, port) for _ in range(self._size)]
        try:
            async with asyncio.TaskGroup() as tasks:
                for number, connection in enumerate(connections):
                    tasks.create_task(_Writer(self, number, connection, self._draw).run())
                if not self.reads_only:
                    connections.append(await Connection.open(host, port))
                    tasks.create_task(_TableMaker(self, connections[-1], self._draw).run())
        finally:
            for connection in connections:
                await connection.close()

    async def wait_answers(self, count: int) -> None:
        """Wait until the clients have received this many answers in total."""
        self._limit = count
        self._enough.clear()
        await self._enough.wait()

    def count_answer(self, answer: Answer) -> None:
        """Count an answer."""
        self.answers += 1
        if is_refused(answer):
            self.refusals += 1
        if self._limit and self.answers >= self._limit:
            self._enough.set()


class _Writer:
    """One client: one request at a time, chosen at random."""

    def __init__(self, writers: Writers, number: int, connection: Connection, draw: Random) -> None:
        self._writers = writers
        self._history = writers.history
        self._name = f"writer{number}"
        self._connection = connection
        self._draw = Random(draw.random())
        self._round = draw.randrange(10**9)
        self._writes = 0
        # The last token of each item that this client saw: None for a missing item, no entry if
        # unknown.
        self._seen: dict[Place, str | None] = {}
        # The last item that this client put at each place, to put it again: a write without a
        # change.
        self._put: dict[Place, Item] = {}

    async def run(self) -> None:
        steps = (self._get, self._query, self._query_index, self._write, self._batch)
        weights = (8, 4, 4, 0, 0) if self._writers.reads_only else (8, 4, 4, 80, 4)
        try:
            while not self._writers.stopping:
                (step,) = self._draw.choices(steps, weights)
                await step()
        except ConnectionLost:
            return

    def _place(self) -> Place:
        table = self._draw.choice(TABLES)
        if self._draw.random() < 0.4:
            collection = self._draw.randrange(_SHARED_COLLECTIONS)
            return Place(table, f"shared{collection}", f"{self._draw.randrange(_SHARED_ITEMS)}")
        return Place(table, self._name, f"{self._draw.randrange(_OWN_ITEMS)}")

    def _token(self) -> str:
        self._writes += 1
        return f"{self._name}.{self._round}.{self._writes}"

    async def _write(self) -> None:
        place = self._place()
        if place.pk != self._name and place not in self._seen:
            await self._get(place)
        write = self._draw_write(place)
        operation, answer = await self._ask(
            place,
            write,
            *write_request(place.table, place.key, write, images := self._draw_images(write)),
        )
        if answer is None:
            return
        outcome = write_outcome(answer, images)
        self._note(place, operation, outcome)
        if isinstance(outcome, Refused):
            self._see(place, outcome.item)
        elif isinstance(outcome, Unanswered) or isinstance(write, Delete):
            self._seen.pop(place, None)
        else:
            written = write.item if isinstance(write, Put) else write.sets
            self._seen[place] = written[TOKEN]["S"]

    def _draw_write(self, place: Place) -> Write:
        condition: Anything | Expected = Anything()
        # With unconditional writes of several clients to one item, any state would be possible.
        if place in self._seen and (place.pk != self._name or self._draw.random() < 0.5):
            condition = Expected(self._seen[place])
        kind = self._draw.random()
        if kind < 0.2:
            return Delete(condition)
        last = self._put.get(place)
        if kind < 0.25 and last is not None and self._seen.get(place) == last[TOKEN]["S"]:
            return Put(last, condition)
        attributes = self._draw_attributes()
        if kind < 0.6:
            self._put[place] = {**place.key, **attributes}
            return Put(self._put[place], condition)
        removes = tuple(name for name in ("rank", "title", "payload") if name not in attributes)
        return Update(place.key, attributes, removes, ("n",), condition)

    def _draw_attributes(self) -> Item:
        token = self._token()
        size = self._draw.choices((40, 300, 5_000, 40_000), weights=(60, 34, 5, 1))[0]
        attributes: Item = {
            TOKEN: {"S": token},
            "again": {"M": {"list": {"L": [{"S": token}, {"NULL": True}]}}},
            "payload": {"S": token + "x" * self._draw.randrange(size)},
            "rank": {"N": str(self._draw.randrange(50))},
            "title": {"S": self._draw.choice(("Aurora", "Borealis", "Corona", token))},
        }
        for name in ("payload", "rank", "title"):
            if self._draw.random() < 0.25:
                del attributes[name]
        return attributes

    def _draw_images(self, write: Write) -> Images:
        choices: list[Images] = ["NONE", "ALL_OLD"]
        if isinstance(write, Update):
            choices.append("ALL_NEW")
        return self._draw.choice(choices)

    async def _batch(self) -> None:
        """BatchWriteItem: several independent writes."""
        table = self._draw.choice(TABLES)
        numbers = self._draw.sample(range(_OWN_ITEMS), 3)
        places = [Place(table, self._name, f"{number}") for number in numbers]
        writes: list[Put | Delete] = [
            Put({**place.key, **self._draw_attributes()}) for place in places[:2]
        ]
        writes.append(Delete())
        operations = [
            self._history.invoke(self._name, place.name, write)
            for place, write in zip(places, writes, strict=True)
        ]
        requests = [
            {"PutRequest": {"Item": write.item}}
            if isinstance(write, Put)
            else {"DeleteRequest": {"Key": place.key}}
            for place, write in zip(places, writes, strict=True)
        ]
        for place in places:
            self._seen.pop(place, None)
        answer = await self._connection.call("BatchWriteItem", {"RequestItems": {table: requests}})
        self._writers.count_answer(answer)
        if is_refused(answer):
            left = requests
        else:
            left = answer.body.get("UnprocessedItems", {}).get(table, [])
        for place, operation, request in zip(places, operations, requests, strict=True):
            if request in left:
                self._history.withdraw(place.name, operation)
            else:
                self._note(place, operation, write_outcome(answer, "NONE"))

    async def _get(self, place: Place | None = None) -> None:
        place = place or self._place()
        body = {"TableName": place.table, "Key": place.key, "ConsistentRead": True}
        operation, answer = await self._ask(place, Read(), "GetItem", body)
        if answer is not None:
            _expect_success(answer)
            item = answer.body.get("Item")
            self._history.answer(operation, Found(item))
            self._see(place, item)

    async def _query(self) -> None:
        place = self._place()
        await self._read_collection(place.table, place.pk, None)

    async def _query_index(self) -> None:
        place = self._place()
        index = self._draw.choice([each for each in INDEXES if each.table == place.table])
        await self._read_collection(place.table, place.pk, index)

    async def _read_collection(self, table: str, pk: str, index: Index | None) -> None:
        """Query an item collection.

        In the history, the query reads every item, also missing ones.
        """
        count = _OWN_ITEMS if pk == self._name else _SHARED_ITEMS
        places = [Place(table, pk, f"{number}") for number in range(count)]
        read = Read(f"{table}/{index.name}" if index else None)
        operations = [self._history.invoke(self._name, place.name, read) for place in places]
        body = {
            "TableName": table,
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": pk}},
            "ScanIndexForward": self._draw.random() < 0.5,
        }
        if index is not None:
            body["IndexName"] = index.name
        answer = await self._connection.call("Query", body)
        self._writers.count_answer(answer)
        if is_refused(answer):
            for place, operation in zip(places, operations, strict=True):
                self._history.withdraw(place.name, operation)
            return
        _expect_success(answer)
        assert "LastEvaluatedKey" not in answer.body, "the collections fit in one page"
        items = answer.body["Items"]
        order = [_sort_value(item, index) for item in items]
        assert order == sorted(order, reverse=not body["ScanIndexForward"]), order
        found = {item["sk"]["S"]: item for item in items}
        assert len(found) == len(items), f"an item is there twice: {items}"
        for place, operation in zip(places, operations, strict=True):
            self._history.answer(operation, Found(found.get(place.sk)))

    async def _ask(
        self, place: Place, request: Write | Read, operation: str, body: dict[str, Any]
    ) -> tuple[Operation, Answer | None]:
        """Send a request on one item; the answer is None if the request had no effect."""
        noted = self._history.invoke(self._name, place.name, request)
        answer = await self._connection.call(operation, body)
        self._writers.count_answer(answer)
        if is_refused(answer):
            self._history.withdraw(place.name, noted)
            return noted, None
        return noted, answer

    def _note(self, place: Place, operation: Operation, outcome: Outcome) -> None:
        self._history.answer(operation, outcome)
        if isinstance(outcome, Unanswered):
            self._writers.unknown_outcomes += 1
            self._seen.pop(place, None)

    def _see(self, place: Place, item: State) -> None:
        self._seen[place] = item[TOKEN]["S"] if item is not None else None


class _TableMaker:
    """One client that creates and deletes tables; the history records a table as an item."""

    def __init__(self, writers: Writers, connection: Connection, draw: Random) -> None:
        self._writers = writers
        self._connection = connection
        self._draw = Random(draw.random())

    async def run(self) -> None:
        try:
            while not self._writers.stopping:
                await self._step(self._draw.choice(TEMPORARY_TABLES))
        except ConnectionLost:
            return

    async def _step(self, name: str) -> None:
        if self._draw.random() < 0.5:
            await self._ask(name, Delete(Expected(name)), "DeleteTable", {"TableName": name})
        elif await self._ask(
            name,
            Put(table_item(name), Expected(None)),
            "CreateTable",
            {**create_table(TABLES[0]), "TableName": name},
        ):
            answer = await self._connection.call("Scan", {"TableName": name})
            if is_refused(answer):
                return
            _expect_success(answer)
            assert answer.body["Items"] == [], f"a new table shows items of an old one: {answer}"
            item = {**Place(name, "p", "s").key, "rank": {"N": "1"}, "title": {"S": "t"}}
            answer = await self._connection.call("PutItem", {"TableName": name, "Item": item})
            assert answer.status == 200 or is_refused(answer) or answer.status == 500, answer

    async def _ask(
        self, name: str, request: Put | Delete, operation: str, body: dict[str, Any]
    ) -> bool:
        """Send a request on a table; whether it succeeded."""
        history = self._writers.history
        key = table_key(name)
        noted = history.invoke("tables", key, request)
        answer = await self._connection.call(operation, body)
        self._writers.count_answer(answer)
        if answer.status == 200:
            history.answer(noted, Done())
        elif answer.error in ("ResourceInUseException", "ResourceNotFoundException"):
            history.answer(noted, Refused())
        elif str(answer.body["message"]).startswith("Nothing was"):
            # After a commit with an unknown outcome, the catalog's owner must read the head row
            # again, so that later commits expect the right one.
            assert "is not the expected one" not in answer.body["message"], answer
            history.withdraw(key, noted)
        else:
            assert answer.status == 500, answer
        return answer.status == 200


def table_key(name: str) -> str:
    """The name of a table in the history."""
    return f"tables/{name}"


def table_item(name: str) -> Item:
    """A table as an item of the history."""
    return {TOKEN: {"S": name}}


def _sort_value(item: Item, index: Index | None) -> Any:
    sort = index.sort if index is not None else "sk"
    kind, value = next(iter(item[sort].items()))
    return int(value) if kind == "N" else value


def write_request(
    table: str, key: Item, write: Write, images: Images
) -> tuple[str, dict[str, Any]]:
    """The operation and body of a write."""
    body: dict[str, Any] = {"TableName": table, "ReturnValues": images}
    names: dict[str, str] = {}
    values: Item = {}
    if isinstance(write.condition, Expected):
        names["#token"] = TOKEN
        body["ConditionExpression"] = "attribute_not_exists(#token)"
        body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        if write.condition.token is not None:
            body["ConditionExpression"] = "#token = :expected"
            values[":expected"] = {"S": write.condition.token}
    match write:
        case Put():
            operation = "PutItem"
            body["Item"] = write.item
        case Delete():
            operation = "DeleteItem"
            body["Key"] = key
        case Update():
            operation = "UpdateItem"
            body["Key"] = key
            body["UpdateExpression"] = _update_expression(write, names, values)
    if names:
        body["ExpressionAttributeNames"] = names
    if values:
        body["ExpressionAttributeValues"] = values
    return operation, body


def _update_expression(update: Update, names: dict[str, str], values: Item) -> str:
    names.update({f"#{name}": name for name in (*update.sets, *update.removes, *update.counts)})
    values.update({f":{name}": value for name, value in update.sets.items()})
    clauses = ["SET " + ", ".join(f"#{name} = :{name}" for name in update.sets)]
    if update.removes:
        clauses.append("REMOVE " + ", ".join(f"#{name}" for name in update.removes))
    if update.counts:
        values[":one"] = {"N": "1"}
        clauses.append("ADD " + ", ".join(f"#{name} :one" for name in update.counts))
    return " ".join(clauses)


def is_refused(answer: Answer) -> bool:
    """Whether the request had no effect: a refused one, or a read while PostgreSQL is down."""
    return answer.error in _THROTTLED or is_without_effect(str(answer.body.get("message", "")))


def is_without_effect(message: str) -> bool:
    """Whether an error says that a write did not happen, or that data can't be read."""
    return message.startswith("Nothing was written") or "can't be read: " in message


def write_outcome(answer: Answer, images: Images) -> Outcome:
    """The outcome of a write that was not refused as a whole."""
    if answer.status == 200:
        return Done(images, answer.body.get("Attributes"))
    if answer.error == "ConditionalCheckFailedException":
        return Refused(shown=True, item=answer.body.get("Item"))
    assert answer.status == 500, answer
    assert "unknown" in answer.body["message"], answer
    return Unanswered()


def _expect_success(answer: Answer) -> None:
    assert answer.status == 200, answer


async def make_tables(connection: Connection, tables: Sequence[str] = TABLES) -> None:
    """Create the tables and wait until they are active."""
    for table in tables:
        answer = await connection.call("CreateTable", create_table(table))
        _expect_success(answer)
    for table in tables:
        status = "CREATING"
        while status != "ACTIVE":
            answer = await connection.call("DescribeTable", {"TableName": table})
            status = answer.body["Table"]["TableStatus"]

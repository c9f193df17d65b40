"""Random requests of clients to all nodes, with a history of their answers.

Registers are items with conditional writes, deletes and reads. Accounts are items that transactions
change; every write appends its name to a list in the item.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random
from typing import Any, Final

import anyio

from dynactor.api.nodes.node_link import AnswerLost
from tests.simulation.nodes.real_nodes import Cluster
from tests.support.clients.wire import Answer
from tests.support.histories import history
from tests.support.histories.history import TOKEN, Item
from tests.support.histories.history_bank_requests import Place, get, item_of, update, value_of
from tests.support.histories.history_serial import SerialHistory, Value, Write
from tests.support.writers.writers import write_request

TABLES: Final = ("table-a", "table-b", "table-c", "table-d")
# Further tables, which clients create and delete.
PASSING: Final = ("passing-a", "passing-b")
_REGISTERS: Final = 3
_ACCOUNTS: Final = 3
_CLIENTS: Final = 6
THROTTLED: Final = ("ThrottlingException", "ProvisionedThroughputExceededException")
_GROUPS: Final = ("red", "blue")
EXPIRES: Final = "expires"


def table_body(name: str) -> dict[str, Any]:
    """CreateTable's body."""
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": each, "AttributeType": "S"} for each in ("pk", "group")
        ],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [index_body("by_group")],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    }


def topic_of(table: str) -> str:
    """The Kafka topic of a table."""
    return f"topic-{table}"


def index_body(name: str) -> dict[str, Any]:
    """A global index."""
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }


def is_withdrawn(answer: Answer) -> bool:
    """Whether a request certainly had no effect."""
    message = str(answer.body.get("message", answer.body.get("Message", "")))
    return answer.error in THROTTLED or message.startswith("Nothing was written")


class Workload:
    """Sends ``operations`` requests, and records them."""

    def __init__(self, cluster: Cluster, draw: Random, operations: int) -> None:
        self.registers = history.History()
        self.places = [
            Place(table, f"account {table} {number}")
            for table in TABLES
            for number in range(_ACCOUNTS)
        ]
        self.accounts = SerialHistory({place.pk: Value() for place in self.places})
        self.started = 0
        self.acknowledged = 0
        self.violations: list[str] = []
        # By table: the keys of items with an expiry time, and that time.
        self.expiring: dict[tuple[str, str], float] = {}
        # The restored tables, with the writes that they must have.
        self.restored: list[Any] = []
        # The tables that are published to Kafka.
        self.published: Sequence[str] = ()
        self.operations = operations
        self._cluster = cluster
        self._draw = draw
        self._names = 0

    # -- requests -----------------------------------------------------------------------------

    async def ask(
        self, operation: str, body: dict[str, Any], service: str = "DynamoDB"
    ) -> Answer | None:
        """Send a request to any node; None if there was no answer."""
        while not (up := self._cluster.up()):
            await anyio.sleep(0.1)
        process = self._draw.choice(up)
        trace = self._cluster.network.trace
        trace(f"ask {process.name} {operation} {body}")
        try:
            answer = await self._cluster.ask(process, operation, body, service)
        except AnswerLost:
            trace(f"no answer of {process.name} to {operation} {body}")
            return None
        trace(f"{process.name} answers {answer} to {operation} {body}")
        return answer

    async def must(
        self, operation: str, body: dict[str, Any], service: str = "DynamoDB"
    ) -> dict[str, Any]:
        """Repeat a request until it succeeds."""
        with anyio.fail_after(120):
            while True:
                answer = await self.ask(operation, body, service)
                if answer is not None and answer.status == 200:
                    return answer.body
                if answer is not None and answer.error == "ResourceInUseException":
                    return answer.body
                assert answer is None or answer.status == 500 or answer.error in THROTTLED, (
                    answer,
                    body,
                )
                await anyio.sleep(0.2)
        raise AssertionError

    async def prepare(self) -> None:
        """Create the tables and the accounts."""
        for table in TABLES:
            await self.must("CreateTable", table_body(table))
        for table in TABLES:
            await self.wait_active(table)
            await self.must(
                "UpdateTimeToLive",
                {
                    "TableName": table,
                    "TimeToLiveSpecification": {"Enabled": True, "AttributeName": EXPIRES},
                },
            )
        for table in self.published:
            await self._publish(table)
        for place in self.places:
            item = item_of(place, Value()) | {"group": {"S": "accounts"}}
            await self.must("PutItem", {"TableName": place.table, "Item": item})

    async def _publish(self, table: str) -> None:
        """Publish a table to Kafka."""
        arn = f"arn:aws:kinesis:us-east-1:000000000000:stream/{topic_of(table)}"
        body = {"TableName": table, "StreamArn": arn}
        await self.must("EnableKinesisStreamingDestination", body)
        while True:
            shown = await self.must("DescribeKinesisStreamingDestination", {"TableName": table})
            (destination,) = shown["KinesisDataStreamDestinations"]
            if destination["DestinationStatus"] == "ACTIVE":
                return
            await anyio.sleep(0.1)

    @property
    def is_enough(self) -> bool:
        """Whether all requests have been started."""
        return self.started >= self.operations

    async def wait_active(self, table: str, seconds: float = 300) -> None:
        """Wait until a table is active."""
        with anyio.fail_after(seconds):
            while True:
                body = await self.must("DescribeTable", {"TableName": table})
                if body["Table"]["TableStatus"] == "ACTIVE":
                    return
                await anyio.sleep(0.1)

    async def run(self) -> None:
        """Run the clients."""
        async with anyio.create_task_group() as group:
            for number in range(_CLIENTS):
                group.start_soon(_Client(self, f"c{number}", Random(self._draw.random())).run)

    def name(self) -> str:
        """A new name of a request."""
        self._names += 1
        return f"w{self._names}"


class _Client:
    def __init__(self, workload: Workload, name: str, draw: Random) -> None:
        self._workload = workload
        self._name = name
        self._draw = draw
        self._seen: dict[str, str | None] = {}

    async def run(self) -> None:
        workload = self._workload
        steps = (
            self._read,
            self._write,
            self._add,
            self._transact,
            self._transact_get,
            self._expire,
        )
        while not workload.is_enough:
            workload.started += 1
            (step,) = self._draw.choices(steps, (15, 40, 15, 20, 10, 4))
            await step()
            await anyio.sleep(self._draw.random() * 0.3)

    def _note(self, answer: Answer | None, body: object) -> None:
        """Record an answer that no fault explains."""
        if answer is None:
            return
        if answer.status == 200:
            self._workload.acknowledged += 1
        elif answer.status == 500:
            if answer.body.get("message") == "Internal server error":
                self._workload.violations.append(f"crashed: {body}")
        elif answer.error not in (
            "ConditionalCheckFailedException",
            "TransactionCanceledException",
            "TransactionConflictException",
            "TransactionInProgressException",
            *THROTTLED,
        ):
            self._workload.violations.append(f"{answer} to {body}")

    # -- registers ----------------------------------------------------------------------------

    def _register(self) -> tuple[str, str, Item]:
        table = self._draw.choice(TABLES)
        pk = f"register {self._draw.randrange(_REGISTERS)}"
        return table, f"{table}/{pk}", {"pk": {"S": pk}}

    async def _read(self) -> None:
        table, name, key = self._register()
        operation = self._workload.registers.invoke(self._name, name, history.Read())
        body = {"TableName": table, "Key": key, "ConsistentRead": True}
        answer = await self._workload.ask("GetItem", body)
        self._note(answer, body)
        if answer is None or answer.status != 200:
            self._workload.registers.withdraw(name, operation)
            return
        found = history.Found(answer.body.get("Item"))
        self._workload.registers.answer(operation, found)
        self._seen[name] = found.item[TOKEN]["S"] if found.item else None

    async def _write(self) -> None:
        table, name, key = self._register()
        condition: history.Anything | history.Expected = history.Anything()
        if name in self._seen and self._draw.random() < 0.5:
            condition = history.Expected(self._seen[name])
        token: Item = {TOKEN: {"S": self._workload.name()}}
        if self._draw.random() < 0.7:
            token["group"] = {"S": self._draw.choice(_GROUPS)}
        kind = self._draw.random()
        write: history.Put | history.Update | history.Delete
        if kind < 0.2:
            write = history.Delete(condition)
        elif kind < 0.5:
            write = history.Put({**key, **token}, condition)
        else:
            write = history.Update(key, token, counts=("n",), condition=condition)
        images: history.Images = self._draw.choice(("NONE", "ALL_OLD"))
        operation = self._workload.registers.invoke(self._name, name, write)
        request = write_request(table, key, write, images)
        answer = await self._workload.ask(*request)
        self._note(answer, request)
        registers = self._workload.registers
        if answer is None or (answer.status == 500 and not is_withdrawn(answer)):
            return
        if answer.status == 200:
            registers.answer(operation, history.Done(images, answer.body.get("Attributes")))
            is_delete = isinstance(write, history.Delete)
            self._seen[name] = None if is_delete else token[TOKEN]["S"]
        elif answer.error == "ConditionalCheckFailedException":
            refused = history.Refused(shown=True, item=answer.body.get("Item"))
            registers.answer(operation, refused)
            self._seen[name] = refused.item[TOKEN]["S"] if refused.item else None
        else:
            registers.withdraw(name, operation)

    # -- accounts -----------------------------------------------------------------------------

    async def _add(self) -> None:
        place = self._draw.choice(self._workload.places)
        name = self._workload.name()
        await self._change(
            name, {place.pk: Write(add=1)}, "UpdateItem", update(place, name, Write(add=1))
        )

    async def _transact(self) -> None:
        places = self._places()
        name = self._workload.name()
        # A transaction whose condition fails must change nothing.
        writes = {
            place.pk: Write(add=1, least=99 if self._draw.random() < 0.1 else None)
            for place in places
        }
        actions = [{"Update": update(place, name, writes[place.pk])} for place in places]
        for action in actions:
            del action["Update"]["ReturnValuesOnConditionCheckFailure"]
        body: dict[str, Any] = {"TransactItems": actions}
        if self._draw.random() < 0.5:
            body["ClientRequestToken"] = f"token {name}"
        await self._change(name, writes, "TransactWriteItems", body)

    async def _change(
        self, name: str, writes: dict[str, Write], operation: str, body: dict[str, Any]
    ) -> None:
        accounts = self._workload.accounts
        transaction = accounts.invoke(name, writes)
        answer = await self._workload.ask(operation, body)
        if (
            (answer is None or (answer.status == 500 and not is_withdrawn(answer)))
            and "ClientRequestToken" in body
            and self._draw.random() < 0.7
        ):
            # An SDK repeats it, too; the token keeps it from being done twice.
            answer = await self._workload.ask(operation, body)
            if answer is not None and answer.status != 200:
                # The first one may still have been done.
                return
        self._note(answer, body)
        if answer is None or (answer.status == 500 and not is_withdrawn(answer)):
            return
        if answer.status == 200:
            accounts.done(transaction)
        elif answer.error != "TransactionInProgressException":
            accounts.failed(transaction)

    def _places(self) -> Sequence[Place]:
        """Two or three accounts, mostly of one table."""
        places = self._workload.places
        if self._draw.random() < 0.6:
            table = self._draw.choice(TABLES)
            places = [place for place in places if place.table == table]
        return self._draw.sample(places, self._draw.choice((2, 2, 3)))

    async def _transact_get(self) -> None:
        places = self._places()
        transaction = self._workload.accounts.invoke(self._workload.name())
        body = {"TransactItems": [{"Get": get(place)} for place in places]}
        answer = await self._workload.ask("TransactGetItems", body)
        self._note(answer, body)
        if answer is None or answer.status != 200:
            self._workload.accounts.failed(transaction)
            return
        self._workload.accounts.done(
            transaction,
            {
                place.pk: value_of(found["Item"])
                for place, found in zip(places, answer.body["Responses"], strict=True)
            },
        )

    # -- time to live -------------------------------------------------------------------------

    async def _expire(self) -> None:
        table, name = self._draw.choice(TABLES), self._workload.name()
        at = int(time.time() + self._draw.choice((-3, 2, 5, 10_000)))
        item = {
            "pk": {"S": f"expiring {name}"},
            EXPIRES: {"N": str(at)},
            "group": {"S": self._draw.choice(_GROUPS)},
        }
        body = {"TableName": table, "Item": item}
        answer = await self._workload.ask("PutItem", body)
        self._note(answer, body)
        if answer is not None and answer.status == 200:
            self._workload.expiring[table, item["pk"]["S"]] = at

"""Clients of a bank: concurrent transfers, totals, conditional writes and single requests.

A request that conflicts with another transaction is retried under a new name, after a random and
growing delay. A request without an answer is retried with its client token, or given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, TypeAlias

from tests.support.clients.wire import Answer
from tests.support.histories.history import Item
from tests.support.histories.history_bank_requests import (
    ACCOUNTS,
    BALANCE,
    ITEMS,
    REGISTERS,
    TABLES,
    TICKET,
    TICKET_PLACES,
    Place,
    check,
    get,
    item_of,
    move,
    put,
    ticket_of,
    update,
    value_of,
)
from tests.support.histories.history_figures import count_overlapping
from tests.support.histories.history_serial import SerialHistory, Transaction, Value, Write
from tests.support.histories.restarting_server import (
    CLIENT_COUNT,
    Progress,
    ReconnectingClient,
    RestartingServer,
    make_tables,
)
from tests.support.writers.writers import is_without_effect

HOT: Final = "account0"
TOTAL: Final = BALANCE * len(ACCOUNTS)

_FIRST_WAIT_SECONDS: Final = 0.05
_LONGEST_WAIT_SECONDS: Final = 2.0

Actions: TypeAlias = list[dict[str, Any]]
# Sends a request once, under a new name; returns whether it conflicted with another transaction.
Attempt: TypeAlias = Callable[[], Awaitable[bool]]


class BankClients:
    """Many clients with one history, which run until ``enough`` operations have succeeded.

    About ``hot_share`` of all operations use one account; ``get_share`` are single gets.
    """

    def __init__(
        self, server: RestartingServer, enough: int, hot_share: float, get_share: float = 0.3
    ) -> None:
        self.history = SerialHistory(
            dict.fromkeys(ACCOUNTS, Value(number=BALANCE))
            | dict.fromkeys(REGISTERS, Value())
            | {TICKET: Value()}
        )
        self.progress = Progress(enough)
        self.hot_share = hot_share
        self.get_share = get_share
        self._on_hot: list[Transaction] = []
        self.totals: list[int] = []
        self.conflicts = 0
        self.retries: list[int] = []
        self.commits = dict.fromkeys(range(CLIENT_COUNT), 0)
        self._server = server

    async def run(self, kills_at: Sequence[int] = (), quiet_rounds: int = 0) -> None:
        """Create the bank, run the clients, kill at these counts, and read everything at the end.

        In each of ``quiet_rounds``, a single client writes the hot account and reads it.
        """
        client = ReconnectingClient(self._server)
        try:
            await make_tables(client, list(TABLES))
            await self._fill(client)
            async with asyncio.TaskGroup() as tasks:
                for number in range(CLIENT_COUNT):
                    draw = Random(self._server.draw.random())
                    tasks.create_task(_Client(self, self._server, number, draw).run())
                for count in kills_at:
                    await self.progress.wait(count)
                    await self._server.disturb()
        finally:
            await client.close()
        last = _Client(self, self._server, CLIENT_COUNT, self._server.draw)
        await last.alternate(quiet_rounds)
        await last.read_all()

    @property
    def overlapping_on_hot(self) -> int:
        """The number of operations on the hot account, without failed ones, that overlapped another
        one.
        """
        return count_overlapping([each for each in self._on_hot if each.state != "failed"])

    @property
    def unknown(self) -> int:
        """The number of transactions without an answer."""
        return sum(each.state == "unknown" for each in self.history.transactions)

    def note_hot(self, transaction: Transaction) -> None:
        """Record that a transaction uses the hot account."""
        self._on_hot.append(transaction)

    async def _fill(self, client: ReconnectingClient) -> None:
        for name, place in [*ITEMS.items(), (TICKET, TICKET_PLACES[0])]:
            item = item_of(place, self.history.initial[name])
            await client.must("PutItem", {"TableName": place.table, "Item": item})


class _Client:
    def __init__(
        self, clients: BankClients, server: RestartingServer, number: int, draw: Random
    ) -> None:
        self._clients = clients
        self._history = clients.history
        self._client = ReconnectingClient(server)
        self._number = number
        self._draw = draw
        self._names = 0
        # The values that this client saw last.
        self._seen: dict[str, Value] = {}

    async def run(self) -> None:
        steps = {
            self._transfer: 27,
            self._look: 12,
            self._total: 0.5,
            self._update: 12,
            self._put: 12,
            self._move: 5,
        }
        try:
            while not self._clients.progress.is_enough or not self._clients.commits[self._number]:
                if self._draw.random() < self._clients.get_share:
                    step = self._get
                else:
                    (step,) = self._draw.choices(list(steps), list(steps.values()))
                await self._until_done(step())
        finally:
            await self._client.close()

    async def alternate(self, rounds: int) -> None:
        """Write the hot account and read it, in turn."""
        self._clients.hot_share = 1.0
        for _ in range(rounds):
            await self._until_done(self._update())
            await self._until_done(self._get())

    async def read_all(self) -> None:
        """Read every item without other activity: all locks are released."""
        try:
            await self._until_done(self._read([*ITEMS, TICKET]))
        finally:
            await self._client.close()

    async def _until_done(self, attempt: Attempt) -> None:
        retries = 0
        while await attempt():
            self._clients.conflicts += 1
            longest = min(_FIRST_WAIT_SECONDS * 2**retries, _LONGEST_WAIT_SECONDS)
            await asyncio.sleep(self._draw.uniform(0, longest))
            retries += 1
        self._clients.retries.append(retries)

    # The operations. Each chooses its items at random once, for all its attempts.

    def _transfer(self) -> Attempt:
        """Transfer money from one account to others, possibly with a condition check and a put."""
        payer, *receivers = self._draw_items(ACCOUNTS, self._draw.choice((2, 2, 3, 4)))
        amounts = {name: self._draw.randrange(1, 20) for name in receivers}
        paid = sum(amounts.values())
        writes = {payer: Write(add=-paid, least=paid)}
        writes |= {name: Write(add=amount) for name, amount in amounts.items()}
        checked = self._draw_seen([name for name in ITEMS if name not in writes])
        register = self._draw_seen([name for name in REGISTERS if name != checked])
        if register is not None:
            writes[register] = Write(put=self._draw.randrange(1000))

        async def attempt() -> bool:
            name = self._name()
            actions: Actions = [
                {"Put": put(ITEMS[each], name, self._seen[each], write)}
                if each in REGISTERS
                else {"Update": update(ITEMS[each], name, write)}
                for each, write in writes.items()
            ]
            expected = [each for each in (checked, register) if each is not None]
            reads = {each: self._seen[each] for each in expected}
            if checked is not None:
                actions.append({"ConditionCheck": check(ITEMS[checked], self._seen[checked])})
            return await self._transact(name, writes, actions, reads)

        return attempt

    def _move(self) -> Attempt:
        """Delete the ticket at one place and put it at another; read it if its place is unknown."""
        if TICKET not in self._seen:
            return self._read([TICKET])
        to = self._draw.choice([0, 1, 2])

        async def attempt() -> bool:
            seen = self._seen[TICKET]
            name = self._name()
            place = (seen.number + 1) % len(TICKET_PLACES) if to == seen.number else to
            writes = {TICKET: Write(put=place)}
            return await self._transact(name, writes, move(name, seen, place), {TICKET: seen})

        return attempt

    def _look(self) -> Attempt:
        names = self._draw_items(ITEMS, self._draw.choice((2, 3, 4)))
        return self._read([*names, TICKET] if self._draw.random() < 0.3 else names)

    def _total(self) -> Attempt:
        return self._read([*ITEMS, TICKET])

    def _read(self, names: list[str]) -> Attempt:
        """TransactGetItems of these items."""
        places: list[Place] = []
        for name in names:
            places += TICKET_PLACES if name == TICKET else [ITEMS[name]]

        async def attempt() -> bool:
            transaction = await self._invoke(self._name(), {}, names)
            body = {"TransactItems": [{"Get": get(place)} for place in places]}
            answer = await self._client.ask("TransactGetItems", body)
            if answer is None or self._is_refused(transaction, answer):
                return self._is_conflict(answer)
            items = [response.get("Item") for response in answer.body["Responses"]]
            reads: dict[str, Value] = {}
            for name in names:
                if name == TICKET:
                    reads[name] = ticket_of(items[-len(TICKET_PLACES) :])
                else:
                    reads[name] = _value_at(items, names.index(name))
            self._done(transaction, reads)
            if set(ACCOUNTS) <= set(names):
                self._clients.totals.append(sum(reads[name].number for name in ACCOUNTS))
            return False

        return attempt

    def _get(self) -> Attempt:
        """A consistent GetItem."""
        (name,) = self._draw_items(ITEMS, 1, more=3)

        async def attempt() -> bool:
            transaction = await self._invoke(self._name(), {}, [name])
            body = {**get(ITEMS[name]), "ConsistentRead": True}
            answer = await self._client.ask("GetItem", body)
            if answer is not None and not self._is_refused(transaction, answer):
                self._done(transaction, {name: _value_at([answer.body.get("Item")], 0)})
            return False

        return attempt

    def _update(self) -> Attempt:
        """A single UpdateItem that returns the old item."""
        (name,) = self._draw_items(ITEMS, 1)
        writes = {name: Write()}

        async def attempt() -> bool:
            own = self._name()
            body = {**update(ITEMS[name], own, writes[name]), "ReturnValues": "ALL_OLD"}
            return await self._write_one(own, name, writes, "UpdateItem", body)

        return attempt

    def _put(self) -> Attempt:
        """A single PutItem over the last seen value, or a read if nothing was seen yet."""
        (name,) = self._draw_items(ITEMS, 1)
        if name not in self._seen:
            return self._read([name])
        is_register = name in REGISTERS
        writes = {name: Write(put=self._draw.randrange(1000)) if is_register else Write()}

        async def attempt() -> bool:
            own = self._name()
            body = put(ITEMS[name], own, self._seen[name], writes[name])
            body["ReturnValues"] = "ALL_OLD"
            return await self._write_one(own, name, writes, "PutItem", body)

        return attempt

    # Execution of the operations.

    async def _write_one(
        self,
        own: str,
        name: str,
        writes: Mapping[str, Write],
        operation: str,
        body: dict[str, Any],
    ) -> bool:
        transaction = await self._invoke(own, writes, [name])
        answer = await self._client.ask(operation, body)
        if answer is None:
            self._seen.pop(name, None)
            return False
        if answer.error == "ConditionalCheckFailedException":
            self._see_failed(transaction, {name: answer.body.get("Item")})
            return False
        if self._is_refused(transaction, answer):
            return self._is_conflict(answer)
        self._done(transaction, {name: _value_at([answer.body.get("Attributes")], 0)})
        return False

    async def _transact(
        self,
        name: str,
        writes: Mapping[str, Write],
        actions: Actions,
        reads: Mapping[str, Value],
    ) -> bool:
        self._draw.shuffle(actions)
        transaction = await self._invoke(name, writes, [*writes, *reads])
        body = {"TransactItems": actions, "ClientRequestToken": name}
        answer = await self._client.ask("TransactWriteItems", body)
        while answer is None and self._draw.random() < 0.5:
            # The client token makes the retry idempotent, whatever the outcome of the first
            # attempt.
            answer = await self._client.ask("TransactWriteItems", body)
        if answer is None:
            return False
        if answer.error == "TransactionCanceledException" and not self._is_conflict(answer):
            shown = {
                _key_of(item): item
                for reason in answer.body["CancellationReasons"]
                if (item := reason.get("Item")) is not None
            }
            assert any(
                reason["Code"] == "ConditionalCheckFailed"
                for reason in answer.body["CancellationReasons"]
            ), answer
            self._see_failed(transaction, shown)
            return False
        if self._is_refused(transaction, answer):
            return self._is_conflict(answer)
        self._done(transaction, reads)
        self._clients.commits[self._number] += 1
        return False

    async def _invoke(
        self, name: str, writes: Mapping[str, Write], touched: Sequence[str]
    ) -> Transaction:
        await self._client.ready()
        transaction = self._history.invoke(name, writes)
        if HOT in touched:
            self._clients.note_hot(transaction)
        return transaction

    def _done(self, transaction: Transaction, reads: Mapping[str, Value]) -> None:
        self._history.done(transaction, reads)
        self._clients.progress.add()
        self._seen |= reads
        for name, write in transaction.writes.items():
            if name in reads:
                self._seen[name] = write.apply(transaction.name, reads[name])
            else:
                self._seen.pop(name, None)

    def _see_failed(self, transaction: Transaction, shown: Mapping[str, Item | None]) -> None:
        """Record that a condition was false: nothing was written, and the answer has the items."""
        seen = {name: value_of(item) for name, item in shown.items() if item is not None}
        self._history.failed(transaction, seen)
        self._clients.progress.add()
        for name in transaction.writes:
            self._seen.pop(name, None)
        self._seen |= seen

    def _is_refused(self, transaction: Transaction, answer: Answer) -> bool:
        """Whether the answer is an error; records a failure if nothing was written for certain."""
        if answer.status == 200:
            return False
        message = str(answer.body.get("message", answer.body.get("Message", "")))
        if self._is_conflict(answer) or is_without_effect(message):
            self._history.failed(transaction)
        else:
            assert answer.status == 500, answer
            assert "unknown" in message, answer
        return True

    @staticmethod
    def _is_conflict(answer: Answer | None) -> bool:
        """Whether the request conflicted with a transaction."""
        if answer is None:
            return False
        reasons = answer.body.get("CancellationReasons", ())
        return answer.error == "TransactionConflictException" or any(
            reason["Code"] == "TransactionConflict" for reason in reasons
        )

    def _draw_items(self, items: Mapping[str, Place], count: int, *, more: float = 1) -> list[str]:
        """Random items; the hot account is among them with the probability ``hot_share * more``."""
        names = self._draw.sample([name for name in items if name != HOT], count)
        if self._draw.random() < self._clients.hot_share * more:
            names[self._draw.randrange(count)] = HOT
        return names

    def _draw_seen(self, names: Sequence[str]) -> str | None:
        """One of these items that this client has seen, in 20% of the calls; otherwise None."""
        seen = [name for name in names if name in self._seen]
        return self._draw.choice(seen) if seen and self._draw.random() < 0.2 else None

    def _name(self) -> str:
        self._names += 1
        return f"c{self._number}.{self._names}"


def _key_of(item: Item) -> str:
    pk: str = item["pk"]["S"]
    return pk if pk in ITEMS else TICKET


def _value_at(items: Sequence[Item | None], position: int) -> Value:
    item = items[position]
    # The checker reports a name that no write has, so it reports this value.
    return value_of(item) if item is not None else Value(("not there",))

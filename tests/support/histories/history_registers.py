"""Clients that read and write single items as fast as possible, mostly the same one.

Every write gives the item a unique token, and most answers show an image. So the checker soon finds
an order of the history, or proves that there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from tests.support.histories.history import (
    TOKEN,
    Anything,
    Delete,
    Expected,
    Found,
    History,
    Images,
    Item,
    Put,
    Read,
    Refused,
    Unanswered,
    Update,
)
from tests.support.histories.history_figures import count_overlapping
from tests.support.histories.restarting_server import (
    CLIENT_COUNT,
    Progress,
    ReconnectingClient,
    RestartingServer,
    make_tables,
)
from tests.support.writers.writers import is_refused, write_outcome, write_request

TABLES: Final = ("registers-a", "registers-b")
_ITEMS_PER_TABLE: Final = 6


class Register:
    """Identifies one item of the history by its table and key."""

    def __init__(self, table: str, pk: str) -> None:
        self.table = table
        self.name = f"{table}/{pk}"
        self.key: Item = {"pk": {"S": pk}}


class RegisterClients:
    """Many clients with one history, which run until ``enough`` operations have succeeded.

    ``hot_share`` of all operations are on one item, ``read_share`` of all are reads.
    """

    def __init__(
        self, server: RestartingServer, enough: int, hot_share: float, read_share: float = 0.35
    ) -> None:
        self.history = History()
        self.progress = Progress(enough)
        self.unanswered = 0
        self.registers = [
            Register(table, f"{number}") for table in TABLES for number in range(_ITEMS_PER_TABLE)
        ]
        self.hot_share = hot_share
        self.read_share = read_share
        self._server = server

    async def run(self, kills_at: Sequence[int] = (), quiet_rounds: int = 0) -> None:
        """Create the tables, run the clients, kill at these counts, and read everything at the end.

        In each of ``quiet_rounds``, a single client writes the hot item and reads it.
        """
        client = ReconnectingClient(self._server)
        try:
            await make_tables(client, list(TABLES))
            async with asyncio.TaskGroup() as tasks:
                for number in range(CLIENT_COUNT):
                    draw = Random(self._server.draw.random())
                    tasks.create_task(_Client(self, self._server, f"c{number}", draw).run())
                for count in kills_at:
                    await self.progress.wait(count)
                    await self._server.disturb()
            await client.close()
            await _Client(self, self._server, "quiet", self._server.draw).alternate(quiet_rounds)
            for register in self.registers:
                operation = self.history.invoke("last", register.name, Read())
                body = {"TableName": register.table, "Key": register.key, "ConsistentRead": True}
                answer = await client.must("GetItem", body)
                self.history.answer(operation, Found(answer.get("Item")))
        finally:
            await client.close()

    @property
    def hot(self) -> Register:
        """The item on which most operations are."""
        return self.registers[0]

    def overlapping_on_hot(self) -> int:
        """The number of operations on the hot item that overlapped another one on it."""
        return count_overlapping(self.history.operations[self.hot.name])


class _Client:
    def __init__(
        self, clients: RegisterClients, server: RestartingServer, name: str, draw: Random
    ) -> None:
        self._clients = clients
        self._client = ReconnectingClient(server)
        self._name = name
        self._draw = draw
        self._writes = 0
        # The tokens that this client saw last.
        self._seen: dict[str, str | None] = {}

    async def run(self) -> None:
        try:
            while not self._clients.progress.is_enough:
                await self._step()
        finally:
            await self._client.close()

    async def alternate(self, rounds: int) -> None:
        """Write the hot item and read it, in turn."""
        try:
            for _ in range(rounds):
                await self._client.ready()
                await self._write(self._clients.hot)
                await self._read(self._clients.hot)
        finally:
            await self._client.close()

    async def _step(self) -> None:
        registers = self._clients.registers
        is_hot = self._draw.random() < self._clients.hot_share
        register = registers[0] if is_hot else self._draw.choice(registers[1:])
        await self._client.ready()
        if self._draw.random() < self._clients.read_share:
            await self._read(register)
        else:
            await self._write(register)

    async def _read(self, register: Register) -> None:
        operation = self._clients.history.invoke(self._name, register.name, Read())
        body = {"TableName": register.table, "Key": register.key, "ConsistentRead": True}
        answer = await self._client.ask("GetItem", body)
        if answer is None or is_refused(answer):
            self._clients.history.withdraw(register.name, operation)
            return
        assert answer.status == 200, answer
        outcome = Found(answer.body.get("Item"))
        self._clients.history.answer(operation, outcome)
        self._clients.progress.add()
        self._see(register, outcome)

    async def _write(self, register: Register) -> None:
        write = self._draw_write(register)
        images = self._draw_images(write)
        operation = self._clients.history.invoke(self._name, register.name, write)
        answer = await self._client.ask(*write_request(register.table, register.key, write, images))
        if answer is None:
            self._clients.unanswered += 1
            return
        if is_refused(answer):
            self._clients.history.withdraw(register.name, operation)
            return
        outcome = write_outcome(answer, images)
        self._clients.history.answer(operation, outcome)
        if isinstance(outcome, Unanswered):
            self._clients.unanswered += 1
            return
        self._clients.progress.add()
        if isinstance(outcome, Refused):
            self._see(register, outcome)
        elif isinstance(write, Delete):
            self._seen[register.name] = None
        else:
            written = write.item if isinstance(write, Put) else write.sets
            self._seen[register.name] = written[TOKEN]["S"]

    def _draw_write(self, register: Register) -> Put | Update | Delete:
        condition: Anything | Expected = Anything()
        if register.name in self._seen and self._draw.random() < 0.4:
            condition = Expected(self._seen[register.name])
        kind = self._draw.random()
        if kind < 0.15:
            return Delete(condition)
        self._writes += 1
        token: Item = {TOKEN: {"S": f"{self._name}.{self._writes}"}}
        if kind < 0.5:
            return Put({**register.key, **token}, condition)
        return Update(register.key, token, counts=("n",), condition=condition)

    def _draw_images(self, write: Put | Update | Delete) -> Images:
        choices: list[Images] = ["ALL_OLD", "ALL_OLD", "ALL_OLD", "NONE"]
        if isinstance(write, Update):
            choices.append("ALL_NEW")
        return self._draw.choice(choices)

    def _see(self, register: Register, outcome: Found | Refused) -> None:
        token = outcome.item[TOKEN]["S"] if outcome.item is not None else None
        self._seen[register.name] = token

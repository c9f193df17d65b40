"""Writers whose commits are compared with the store's rows at the end.

Each writer has a head of its own, which is a counter, and puts a row for each value of the counter.
The row of an acknowledged commit must exist, the row of a refused commit must not, and the row of a
commit with an unknown outcome may exist.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from dynactor.storage.store import Conflict, Group, Store, StoreError, Unknown


class AuditedWriters:
    """Concurrent writers. ``outcomes`` counts the outcomes of their commits."""

    def __init__(self, store: Store, count: int = 12) -> None:
        self.outcomes: Counter[str] = Counter()
        self._store = store
        self._count = count
        self._stopped = False
        # By writer: the values that must be stored, and those that may be stored.
        self._written: list[set[int]] = [set() for _ in range(count)]
        self._unknown: list[set[int]] = [set() for _ in range(count)]

    async def run(self) -> None:
        """Write until ``stop`` is called."""
        async with asyncio.TaskGroup() as group:
            for writer in range(self._count):
                group.create_task(self._write(writer))

    def stop(self) -> None:
        """End each writer after its present commit."""
        self._stopped = True

    async def wait_written(self, commits: int) -> None:
        """Wait until this many more commits are acknowledged."""
        target = self.outcomes["written"] + commits
        while self.outcomes["written"] < target:
            await asyncio.sleep(0)

    async def _write(self, writer: int) -> None:
        value = 0
        head: bytes | None = None
        while not self._stopped:
            value += 1
            new = b"%d" % value
            group = Group(_head(writer), head, new, puts=[(_row(writer, value), new)])
            try:
                await (await self._store.commit([group]))
            except Unknown:
                self._unknown[writer].add(value)
                self.outcomes["unknown"] += 1
                head = await self._load_head(writer)
            except Conflict:
                # An earlier commit with an unknown outcome was written meanwhile.
                self.outcomes["conflict"] += 1
                head = await self._load_head(writer)
            except StoreError as error:
                self.outcomes[type(error).__name__] += 1
            else:
                self._written[writer].add(value)
                self.outcomes["written"] += 1
                head = new

    async def _load_head(self, writer: int) -> bytes | None:
        while True:
            try:
                (head,) = await self._store.latest.load([_head(writer)])
            except StoreError:
                self.outcomes["head not read"] += 1
            else:
                return head

    async def violations(self) -> list[str]:
        """The differences between the content of the store and the answers to the writers."""
        found = []
        for writer in range(self._count):
            rows = await self._store.durable().page(
                _row(writer, 0), _row(writer, 1 << 40), max_rows=1 << 30, max_bytes=1 << 30
            )
            there = {int(row.value) for row in rows}
            written, unknown = self._written[writer], self._unknown[writer]
            found += [f"writer {writer} lost {value}" for value in sorted(written - there)]
            found += [
                f"writer {writer} was told that {value} is not written"
                for value in sorted(there - written - unknown)
            ]
            (head,) = await self._store.latest.load([_head(writer)])
            if there and int(head or b"0") != max(there):
                found.append(f"writer {writer} has the head {head!r}, and rows to {max(there)}")
        return found


def _head(writer: int) -> bytes:
    return b"\x02%03d" % writer


def _row(writer: int, value: int) -> bytes:
    return b"\x03%03d/%012d" % (writer, value)

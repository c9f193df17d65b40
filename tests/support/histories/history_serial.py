"""The answers to transactions, and a check that one order of them explains all answers.

A history is strictly serializable if its transactions can be put in one order in which a plain
Python model gives every answer. Each takes effect at a moment between its request and its answer. A
single read or write is a transaction, too. A transaction without an answer happened as a whole if
any of its effects were seen.

Every write appends the transaction's name to a list in the item. So a read of an item shows all of
its versions in order, and the final list shows all that was not lost. The versions determine the
dependencies, as in Adya's thesis and in Elle. Transaction B depends on A if B replaced a version of
A (ww), or read a version of A (wr). B also depends on A if B replaced a version that A read (rw),
or if A was answered before the request of B (time). A history has an order if and only if the
dependencies form no cycle. The check then runs the transactions on the model in that order, and
compares every answer.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct, field

NEVER = float("inf")

# The search for a short cycle starts at this many transactions; it starts at others only if it
# finds none.
_STARTS = 100


class Value(Struct, frozen=True):
    """The content of an item: its number, and the names of the transactions that wrote it, in
    order.
    """

    names: tuple[str, ...] = ()
    number: int = 0


class Write(Struct, frozen=True):
    """Append the transaction's name to an item, and add to its number or replace it.

    ``least`` is the condition that the number was at least this.
    """

    add: int = 0
    put: int | None = None
    least: int | None = None

    def apply(self, name: str, old: Value) -> Value:
        """The item after the write."""
        number = old.number + self.add if self.put is None else self.put
        return Value((*old.names, name), number)


State: TypeAlias = Literal["done", "failed", "unknown"]


class Transaction(Struct):
    """One request, with the times of request and answer on the history's own clock.

    ``reads`` has the items that it read, as they were before its own writes.
    """

    name: str
    invoked: int
    writes: Mapping[str, Write] = {}
    reads: Mapping[str, Value] = field(default_factory=dict)
    answered: float = NEVER
    state: State = "unknown"


class Anomaly(Struct, frozen=True):
    """Why a history is impossible."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class SerialHistory:
    """All transactions on items with these initial values; the last ones must read every item."""

    def __init__(self, initial: Mapping[str, Value]) -> None:
        self.initial = dict(initial)
        self.transactions: list[Transaction] = []
        self._now = 0

    def _tick(self) -> int:
        self._now += 1
        return self._now

    def invoke(self, name: str, writes: Mapping[str, Write] | None = None) -> Transaction:
        """Record a request before it is sent; names are unique."""
        transaction = Transaction(name, self._tick(), writes or {})
        self.transactions.append(transaction)
        return transaction

    def done(self, transaction: Transaction, reads: Mapping[str, Value] | None = None) -> None:
        """Record a successful answer as soon as it arrives."""
        transaction.answered = self._tick()
        transaction.state = "done"
        transaction.reads = reads or {}

    def failed(self, transaction: Transaction, seen: Mapping[str, Value] | None = None) -> None:
        """Record that nothing was written; each item in the answer becomes a separate read."""
        transaction.answered = self._tick()
        transaction.state = "failed"
        for key, value in (seen or {}).items():
            read = Transaction(f"{transaction.name} saw {key}", transaction.invoked)
            read.answered, read.state, read.reads = transaction.answered, "done", {key: value}
            self.transactions.append(read)


def check(history: SerialHistory) -> list[Anomaly]:
    """The reasons why the history is impossible; empty if it is possible."""
    versions, found = _versions(history)
    if found:
        # The dependencies can't be computed from impossible versions.
        return found
    writers = {name for names in versions.values() for name in names}
    committed = [
        transaction
        for transaction in history.transactions
        if transaction.state == "done"
        or (transaction.state == "unknown" and transaction.name in writers)
    ]
    found = list(_missing(committed, versions))
    if found:
        return found
    graph = _Graph(committed, versions)
    order, rest = graph.sort()
    if rest:
        return [Anomaly("cycle", graph.short_cycle(rest))]
    return list(_wrong_answers(history.initial, (committed[node] for node in order)))


_Versions: TypeAlias = dict[str, tuple[str, ...]]


def _versions(history: SerialHistory) -> tuple[_Versions, list[Anomaly]]:
    """The transactions that wrote each item, in order, and the reads that contradict that order."""
    found: list[Anomaly] = []
    versions: _Versions = {
        key: max((names for _, names in read), key=len)
        for key, read in _read_names(history).items()
    }
    for key, read in _read_names(history).items():
        found += [
            Anomaly("forked", f"{reader} read {key} as {names[-3:]}, not in {versions[key]}")
            for reader, names in read
            if versions[key][: len(names)] != names
        ]
    by_name = {transaction.name: transaction for transaction in history.transactions}
    for key, names in versions.items():
        for name, count in Counter(names).items():
            writer = by_name.get(name)
            if writer is None or key not in writer.writes:
                found.append(Anomaly("nobody's", f"{name} is in {key}, and did not write it"))
            elif writer.state == "failed":
                found.append(Anomaly("failed and there", f"{name} is in {key}"))
            if count > 1:
                found.append(Anomaly("done twice", f"{name} is {count} times in {key}"))
    return versions, found


def _read_names(history: SerialHistory) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """By item: each transaction that read the item, and the names that it read."""
    read: dict[str, list[tuple[str, tuple[str, ...]]]] = {
        key: [("the beginning", value.names)] for key, value in history.initial.items()
    }
    for transaction in history.transactions:
        for key, value in transaction.reads.items():
            read[key].append((transaction.name, value.names))
    return read


def _missing(committed: Iterable[Transaction], versions: _Versions) -> Iterator[Anomaly]:
    """Committed writes that are missing, although every item was read at the end."""
    there = {key: frozenset(names) for key, names in versions.items()}
    for transaction in committed:
        missing = [key for key in transaction.writes if transaction.name not in there[key]]
        if len(missing) == len(transaction.writes) > 0:
            yield Anomaly("lost", f"{transaction.name} is nowhere")
        elif missing:
            yield Anomaly("half there", f"{transaction.name} is not in {', '.join(missing)}")


class _Graph:
    """The dependencies between transactions: an edge's source must come before its target.

    The nodes are the transactions by index, followed by one node for each answer. A transaction
    comes before the node of its answer, and that node before later requests. So dependencies of
    time need few edges.
    """

    def __init__(self, committed: list[Transaction], versions: _Versions) -> None:
        self._committed = committed
        self._edges: list[dict[int, str]] = [{} for _ in committed]
        self._add_dependencies(versions)
        self._add_time()

    def _add(self, before: int, after: int, why: str) -> None:
        if before != after:
            self._edges[before].setdefault(after, why)

    def _add_dependencies(self, versions: _Versions) -> None:
        places = {transaction.name: place for place, transaction in enumerate(self._committed)}
        writers = {
            # The initial values have no writer.
            key: [places.get(name) for name in names]
            for key, names in versions.items()
        }
        for key, of_key in writers.items():
            for one, other in pairwise(of_key):
                if one is not None and other is not None:
                    self._add(one, other, f"ww {key}")
        for place, transaction in enumerate(self._committed):
            for key, value in transaction.reads.items():
                read = len(value.names)
                written_by = writers[key][read - 1] if read else None
                if written_by is not None:
                    self._add(written_by, place, f"wr {key}")
                replaced_by = writers[key][read] if read < len(writers[key]) else None
                if replaced_by is not None:
                    self._add(place, replaced_by, f"rw {key}")

    def _add_time(self) -> None:
        moments = sorted(
            (moment, place, is_answer)
            for place, transaction in enumerate(self._committed)
            for moment, is_answer in ((transaction.invoked, False), (transaction.answered, True))
            if moment != NEVER
        )
        last_answer: int | None = None
        for _, place, is_answer in moments:
            if is_answer:
                self._edges.append({})
                node = len(self._edges) - 1
                self._add(place, node, "time")
                if last_answer is not None:
                    self._add(last_answer, node, "time")
                last_answer = node
            elif last_answer is not None:
                self._add(last_answer, place, "time")

    def sort(self) -> tuple[list[int], set[int]]:
        """The transactions in a possible order, and the nodes that no order can contain."""
        waiting_for = Counter(after for edges in self._edges for after in edges)
        ready = deque(node for node in range(len(self._edges)) if not waiting_for[node])
        order: list[int] = []
        left = set(range(len(self._edges)))
        while ready:
            node = ready.popleft()
            left.remove(node)
            if node < len(self._committed):
                order.append(node)
            for after in self._edges[node]:
                waiting_for[after] -= 1
                if not waiting_for[after]:
                    ready.append(after)
        return order, left

    def short_cycle(self, nodes: set[int]) -> str:
        """A cycle within these nodes, as short as a quick search finds."""
        starts = sorted(node for node in nodes if node < len(self._committed))
        cycles = [self._cycle_from(start, nodes) for start in starts[:_STARTS]]
        some = [cycle for cycle in cycles if cycle] or [
            cycle for start in starts[_STARTS:] if (cycle := self._cycle_from(start, nodes))
        ]
        return self._described(min(some, key=len))

    def _cycle_from(self, start: int, nodes: set[int]) -> list[int]:
        """The shortest path from a node to itself; empty if there is none."""
        came_from: dict[int, int] = {}
        waiting = deque([start])
        while waiting:
            node = waiting.popleft()
            for after in self._edges[node]:
                if after == start:
                    way = [node]
                    while way[-1] != start:
                        way.append(came_from[way[-1]])
                    return way[::-1]
                if after in nodes and after not in came_from:
                    came_from[after] = node
                    waiting.append(after)
        return []

    def _described(self, cycle: list[int]) -> str:
        parts = []
        for node, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            if node < len(self._committed):
                parts.append(self._committed[node].name)
                parts.append(f"-{self._edges[node][after]}->")
        return " ".join([*parts, self._committed[cycle[0]].name])


def _wrong_answers(initial: Mapping[str, Value], order: Iterable[Transaction]) -> Iterator[Anomaly]:
    """Run the transactions on the model in this order, and compare their answers."""
    items = dict(initial)
    for transaction in order:
        for key, value in transaction.reads.items():
            if items[key] != value:
                yield Anomaly(
                    "wrong value",
                    f"{transaction.name} read {value.number} in {key}, not {items[key].number}",
                )
        for key, write in transaction.writes.items():
            if write.least is not None and items[key].number < write.least:
                yield Anomaly("condition", f"{transaction.name} found {items[key].number} in {key}")
            items[key] = write.apply(transaction.name, items[key])

"""Operations that compare every answer with the ledger.

Each item has one write at a time, so the last version is always known. A query must also show all
existing items, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, Final

import msgspec

from dynactor.load.check.findings import Finding
from dynactor.load.check.ledger import Ledger, Read, Write
from dynactor.load.check.transactions import Transactions
from dynactor.load.wire.answers import Answer
from dynactor.load.work.bodies import Bodies
from dynactor.load.work.key_space import KeySpace
from dynactor.load.work.keys import KeyChoice
from dynactor.load.work.operations import MISSING, UNPROCESSED, Dialogue, Operations
from dynactor.load.work.plan import Plan
from dynactor.load.work.records import Records, Seen, number_in

_ATTEMPTS: Final = 3
_CONDITION_FAILED: Final = "ConditionalCheckFailedException"

_decode = msgspec.json.Decoder().decode

Item = dict[str, Any]


class CheckedOperations(Operations):
    """The operations on items that only this worker writes."""

    def __init__(
        self,
        plan: Plan,
        bodies: Bodies,
        space: KeySpace,
        choice: KeyChoice,
        random: Random,
        *,
        records: Records,
        ledger: Ledger,
    ) -> None:
        super().__init__(plan, bodies, space, choice, random)
        self._records = records
        self._ledger = ledger
        self._transactions = Transactions()

    def _draw_free(self, count: int = 1) -> list[int]:
        """Different items without a write in flight."""
        numbers: dict[int, None] = {}
        while len(numbers) < count:
            place = self._choice.draw(self._space.count)
            while (number := self._space.number(place)) in numbers or not self._ledger.is_free(
                number
            ):
                place = (place + 1) % self._space.count
            numbers[number] = None
        return list(numbers)

    def _end(self, write: Write, answer: Answer) -> str:
        """Record the answer to a write of one item."""
        error = answer.error
        if not error:
            self._ledger.acknowledged(write)
        elif answer.is_refusal:
            self._ledger.refused(write)
        else:
            self._ledger.unanswered(write)
        return error

    def _put(self, number: int) -> Dialogue:
        write = self._ledger.begin_put(number)
        assert write.stamps is not None
        answer = yield self._bodies.put(number, write.version, write.stamps)
        return self._end(write, answer)

    def put(self) -> Dialogue:
        return (yield from self._put(*self._draw_free()))

    def insert(self) -> Dialogue:
        place = self._space.insert()
        error = yield from self._put(self._space.number(place))
        self._space.inserted(place)
        return error

    def update(self) -> Dialogue:
        return (yield from self._update(*self._draw_free()))

    def _update(self, number: int) -> Dialogue:
        write = self._ledger.begin_update(number)
        if write is None:
            return (yield from self._put(number))
        answer = yield self._bodies.update(number, write.version)
        return self._end(write, answer)

    def conditional_put(self) -> Dialogue:
        (number,) = self._draw_free()
        write = self._ledger.begin_put(number)
        assert write.stamps is not None
        if write.expected is None:
            answer = yield self._bodies.put(number, write.version, write.stamps)
        else:
            answer = yield self._bodies.put_if_version(
                number, write.version, write.stamps, write.expected
            )
        error = self._end(write, answer)
        if error == _CONDITION_FAILED:
            self._ledger.condition_failed(write)
        return error

    def delete(self) -> Dialogue:
        (number,) = self._draw_free()
        write = self._ledger.begin_delete(number)
        answer = yield self._bodies.delete(number)
        return self._end(write, answer)

    def get(self) -> Dialogue:
        return (yield from self._get(self._draw()))

    def read_back(self, number: int) -> Dialogue:
        """Get an item after all writes were answered: an item missing now is lost."""
        error = ""
        for _ in range(_ATTEMPTS):
            error = yield from self._get(number, at_end=True)
            if error in {"", MISSING}:
                return ""
        return error

    def _get(self, number: int, *, at_end: bool = False) -> Dialogue:
        reads = [self._ledger.begin_read(number)]
        answer = yield self._bodies.get(number)
        if answer.error:
            self._unread(reads)
            return answer.error
        item = _decode(answer.body).get("Item")
        self._end_reads(reads, [] if item is None else [item], at_end=at_end)
        return MISSING if item is None else ""

    def read_modify_write(self) -> Dialogue:
        (number,) = self._draw_free()
        error = yield from self._get(number)
        if error not in {"", MISSING}:
            return error
        # Another connection may have begun to write the item meanwhile.
        if not self._ledger.is_free(number):
            (number,) = self._draw_free()
        return (yield from self._update(number))

    def query(self) -> Dialogue:
        numbers = self._collection(self._draw())
        return (yield from self._query(numbers, self._bodies.query(numbers[0]), "sk"))

    def range(self) -> Dialogue:
        number = self._draw()
        numbers = [each for each in self._collection(number) if each >= number]
        limit = self._random.randint(1, self._plan.query_items)
        return (yield from self._query(numbers, self._bodies.range(number, limit), "sk"))

    def local_query(self) -> Dialogue:
        numbers = self._collection(self._draw())
        return (yield from self._query(numbers, self._bodies.local_query(numbers[0]), "score"))

    def _collection(self, number: int) -> Sequence[int]:
        size = self._records.collection_items
        first = number // size * size
        return range(first, first + size)

    def _query(self, numbers: Sequence[int], request: bytes, sort: str) -> Dialogue:
        reads = [self._ledger.begin_read(number) for number in numbers]
        answer = yield request
        if answer.error:
            self._unread(reads)
            return answer.error
        body = _decode(answer.body)
        items = body["Items"]
        if not _is_ordered(items, sort):
            self._ledger.strange(numbers[0], f"items out of order by {sort}: {items!r:.200}")
        if "LastEvaluatedKey" in body:
            # The page ended early. In the table, the items after the last one are unread. In an
            # index, their order is unknown, so all items that are not in the page are unread.
            last = number_in(items[-1]["sk"]["S"]) if sort == "sk" and items else -1
            size = self._records.collection_items
            shown = {number_in(item["sk"]["S"]) for item in items}
            behind = [
                read
                for read in reads
                if (place := read.number % size) > last and place not in shown
            ]
            self._unread(behind)
            reads = [read for read in reads if read not in behind]
        self._end_reads(reads, items)
        return ""

    def global_query(self) -> Dialogue:
        answer = yield self._bodies.global_query(self._draw())
        if answer.error:
            return answer.error
        for item in _decode(answer.body)["Items"]:
            seen = self._records.recognize(item)
            if seen is None:
                self._ledger.strange(-1, item)
            elif self._space.owns(seen.number):
                read = self._ledger.begin_read(seen.number)
                self._ledger.end_read(read, seen, consistent=False)
        return ""

    def batch_get(self) -> Dialogue:
        reads = list(map(self._ledger.begin_read, self._draw_many(self._plan.batch_items)))
        answer = yield self._bodies.batch_get([read.number for read in reads])
        if answer.error:
            self._unread(reads)
            return answer.error
        body = _decode(answer.body)
        left = body["UnprocessedKeys"].get(self._plan.table, {}).get("Keys", [])
        unread = {self._number(key) for key in left}
        self._unread(read for read in reads if read.number in unread)
        self._end_reads(
            [read for read in reads if read.number not in unread],
            body["Responses"].get(self._plan.table, []),
        )
        return UNPROCESSED if left else ""

    def batch_write(self) -> Dialogue:
        writes = self._begin_many(self._plan.batch_items)
        answer = yield self._bodies.batch_write(map(_written, writes.values()))
        left = (
            set()
            if answer.error
            else {
                self._number(request["PutRequest"]["Item"])
                for requests in _decode(answer.body)["UnprocessedItems"].values()
                for request in requests
            }
        )
        for number, write in writes.items():
            if number in left:
                self._ledger.refused(write)
            else:
                self._end(write, answer)
        return answer.error or (UNPROCESSED if left else "")

    def transact_get(self) -> Dialogue:
        drawn = self._draw_many(self._plan.transaction_items)
        # Items written together are read together.
        numbers = list(self._transactions.items_beside(drawn[0])) or drawn
        reads = list(map(self._ledger.begin_read, numbers))
        answer = yield self._bodies.transact_get(numbers)
        if answer.error:
            self._unread(reads)
            return answer.error
        responses = _decode(answer.body)["Responses"]
        items = [each["Item"] for each in responses if each.get("Item")]
        shown = {seen.number: seen.version for seen in map(self._records.recognize, items) if seen}
        for torn in self._transactions.torn(shown):
            self._ledger.findings.note(Finding("torn", torn.number, torn.text))
        self._end_reads(reads, items)
        return ""

    def transact_write(self) -> Dialogue:
        writes = self._begin_many(self._plan.transaction_items)
        self._transactions.begin({number: write.version for number, write in writes.items()})
        answer = yield self._bodies.transact_write(map(_written, writes.values()))
        for write in writes.values():
            self._end(write, answer)
        return answer.error

    def _begin_many(self, count: int) -> dict[int, Write]:
        return {number: self._ledger.begin_put(number) for number in self._draw_free(count)}

    def _number(self, key: Item) -> int:
        collection, position = number_in(key["pk"]["S"]), number_in(key["sk"]["S"])
        return collection * self._records.collection_items + position

    def _unread(self, reads: Iterable[Read]) -> None:
        for read in reads:
            self._ledger.unread(read)

    def _end_reads(self, reads: Iterable[Read], items: list[Item], *, at_end: bool = False) -> None:
        """Match each shown item with its read; items not shown do not exist."""
        waiting: Mapping[int, Read] = {read.number: read for read in reads}
        unseen = dict(waiting)
        for item in items:
            seen = self._records.recognize(item)
            read = None if seen is None else unseen.pop(seen.number, None)
            if seen is None or read is None:
                self._ledger.strange(next(iter(waiting), -1), item)
            else:
                self._end_read(read, seen, at_end=at_end)
        for read in unseen.values():
            self._end_read(read, None, at_end=at_end)

    def _end_read(self, read: Read, seen: Seen | None, *, at_end: bool) -> None:
        self._ledger.end_read(read, seen, consistent=self._plan.consistent, at_end=at_end)


def _written(write: Write) -> tuple[int, int, tuple[int, ...]]:
    assert write.stamps is not None
    return write.number, write.version, write.stamps


def _is_ordered(items: list[Item], sort: str) -> bool:
    def place(item: Item) -> float | str:
        value = item[sort]
        return float(value["N"]) if "N" in value else str(value["S"])

    places: list[Any] = list(map(place, items))
    return all(one <= other for one, other in pairwise(places))

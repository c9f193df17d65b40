"""A worker's operations: each is a dialogue of requests and answers.

A dialogue yields requests, receives their answers, and returns the name of an error, or an empty
name. These operations read as little of the answers as possible; those of ``check/operations.py``
read all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from random import Random
from typing import Final, get_args

from dynactor.load.wire.answers import Answer
from dynactor.load.work.bodies import Bodies
from dynactor.load.work.key_space import KeySpace
from dynactor.load.work.keys import KeyChoice
from dynactor.load.work.plan import Plan
from dynactor.load.work.workloads import OperationName

Dialogue = Generator[bytes, Answer, str]
Operation = Callable[[], Dialogue]

# Outcomes besides the names of DynamoDB's errors.
MISSING: Final = "Missing"
UNPROCESSED: Final = "Unprocessed"

_NOTHING: Final = b"{}"
_ALL_WRITTEN: Final = b'"UnprocessedItems":{}'
_ALL_READ: Final = b'"UnprocessedKeys":{}'


class Operations:
    """The operations of one worker on items drawn by its choice of keys."""

    def __init__(
        self, plan: Plan, bodies: Bodies, space: KeySpace, choice: KeyChoice, random: Random
    ) -> None:
        self._plan = plan
        self._bodies = bodies
        self._space = space
        self._choice = choice
        self._random = random
        self._fields = plan.fields
        self._version = 0

    def by_name(self) -> Mapping[str, Operation]:
        """All operations by name."""
        made: dict[OperationName, Operation] = {
            "get": self.get,
            "put": self.put,
            "update": self.update,
            "conditional-put": self.conditional_put,
            "delete": self.delete,
            "insert": self.insert,
            "read-modify-write": self.read_modify_write,
            "query": self.query,
            "range": self.range,
            "lsi-query": self.local_query,
            "gsi-query": self.global_query,
            "batch-get": self.batch_get,
            "batch-write": self.batch_write,
            "transact-get": self.transact_get,
            "transact-write": self.transact_write,
        }
        assert made.keys() == set(get_args(OperationName))
        return {str(name): operation for name, operation in made.items()}

    def _draw(self) -> int:
        return self._space.number(self._choice.draw(self._space.count))

    def _draw_many(self, count: int) -> list[int]:
        """Different items, because DynamoDB accepts none twice in a request."""
        places: dict[int, None] = {}
        while len(places) < count:
            place = self._choice.draw(self._space.count)
            while place in places:
                place = (place + 1) % self._space.count
            places[place] = None
        return [self._space.number(place) for place in places]

    def _item(self, number: int) -> tuple[int, int, tuple[int, ...]]:
        """An item's number, a new version, and the versions of its fields."""
        self._version += 1
        return number, self._version, (self._version,) * self._fields

    def get(self) -> Dialogue:
        answer = yield self._bodies.get(self._draw())
        return answer.error or (MISSING if answer.body == _NOTHING else "")

    def put(self) -> Dialogue:
        answer = yield self._bodies.put(*self._item(self._draw()))
        return answer.error

    def update(self) -> Dialogue:
        number, version, _ = self._item(self._draw())
        answer = yield self._bodies.update(number, version)
        return answer.error

    def conditional_put(self) -> Dialogue:
        answer = yield self._bodies.put_if_there(*self._item(self._draw()))
        return answer.error

    def delete(self) -> Dialogue:
        answer = yield self._bodies.delete(self._draw())
        return answer.error

    def insert(self) -> Dialogue:
        place = self._space.insert()
        answer = yield self._bodies.put(*self._item(self._space.number(place)))
        self._space.inserted(place)
        return answer.error

    def read_modify_write(self) -> Dialogue:
        number, version, _ = self._item(self._draw())
        answer = yield self._bodies.get(number)
        if not answer.error:
            answer = yield self._bodies.update(number, version)
        return answer.error

    def query(self) -> Dialogue:
        answer = yield self._bodies.query(self._draw())
        return answer.error

    def range(self) -> Dialogue:
        limit = self._random.randint(1, self._plan.query_items)
        answer = yield self._bodies.range(self._draw(), limit)
        return answer.error

    def local_query(self) -> Dialogue:
        answer = yield self._bodies.local_query(self._draw())
        return answer.error

    def global_query(self) -> Dialogue:
        answer = yield self._bodies.global_query(self._draw())
        return answer.error

    def batch_get(self) -> Dialogue:
        answer = yield self._bodies.batch_get(self._draw_many(self._plan.batch_items))
        return answer.error or _left(answer, _ALL_READ)

    def batch_write(self) -> Dialogue:
        items = map(self._item, self._draw_many(self._plan.batch_items))
        answer = yield self._bodies.batch_write(items)
        return answer.error or _left(answer, _ALL_WRITTEN)

    def transact_get(self) -> Dialogue:
        answer = yield self._bodies.transact_get(self._draw_many(self._plan.transaction_items))
        return answer.error

    def transact_write(self) -> Dialogue:
        items = map(self._item, self._draw_many(self._plan.transaction_items))
        answer = yield self._bodies.transact_write(items)
        return answer.error


def _left(answer: Answer, nothing: bytes) -> str:
    return "" if nothing in answer.body else UNPROCESSED

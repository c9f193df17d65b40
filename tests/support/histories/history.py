"""Requests and answers by key, and a check that the answers are linearizable.

Every item is a register. A history is linearizable if its operations can be put in one order in
which a plain Python model gives every answer. Each operation takes effect at a moment between its
request and its answer. An operation without an answer (the server died, or the outcome is unknown)
has its whole effect at some moment after its request, or never. Reads after a restart are in the
same history. So a lost acknowledged write, half of an unacknowledged one, or a write that was read
and then lost all leave a history without such an order.

The search is Wing and Gong's with Lowe's cache of visited configurations. Conditional writes with
unique tokens and images in answers reduce the search. The search doesn't overwrite a token that a
remaining operation must see and no other write can restore.

If the store keeps a log of its changes, the order must match the log, too. Each change of the item
is the log's next entry, and the log has no other entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

Item: TypeAlias = dict[str, dict[str, Any]]
State: TypeAlias = Item | None

# The name of the attribute that conditions compare. Every write gives it a unique value.
TOKEN = "token"

NEVER = float("inf")

# A violation shows this many operations from the end of the longest order.
_SHOWN = 12


class Anything(Struct, frozen=True):
    """No condition: the write is unconditional."""


class Expected(Struct, frozen=True):
    """The condition that the item has this token; if None, that the item does not exist."""

    token: str | None


class Put(Struct, frozen=True):
    """PutItem of a whole item."""

    item: Item
    condition: Anything | Expected = Anything()


class Update(Struct, frozen=True):
    """UpdateItem: SET some attributes, REMOVE some, ADD 1 to some."""

    key: Item
    sets: Item
    removes: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    condition: Anything | Expected = Anything()


class Delete(Struct, frozen=True):
    """DeleteItem."""

    condition: Anything | Expected = Anything()


class Read(Struct, frozen=True):
    """A consistent read of the item, through the table or through an index.

    ``index`` names a function of the checker's ``projections``.
    """

    index: str | None = None


Request: TypeAlias = Put | Update | Delete | Read


Images: TypeAlias = Literal["NONE", "ALL_OLD", "ALL_NEW"]


class Done(Struct, frozen=True):
    """A successful answer to a write.

    ``returned`` is the image in the answer, requested by ``images``.
    """

    images: Images = "NONE"
    returned: State = None


class Refused(Struct, frozen=True):
    """The condition failed.

    If ``shown``, the answer contained the item, which is None if missing.
    """

    shown: bool = False
    item: State = None


class Found(Struct, frozen=True):
    """The result of a read."""

    item: State


class Unanswered(Struct, frozen=True):
    """No answer, or one with an unknown outcome."""


Outcome: TypeAlias = Done | Refused | Found | Unanswered


class Commit(Struct, frozen=True):
    """One entry of a log: the item before the change, and after it."""

    old: State
    new: State


class Operation(Struct):
    """One request on one key, with the times of request and answer on the history's own clock."""

    client: str
    request: Request
    invoked: int
    answered: float = NEVER
    outcome: Outcome = field(default_factory=Unanswered)


class Violation(Struct, frozen=True):
    """Why a key's history is impossible: the longest order found, and the operations after it."""

    key: str
    state: State
    fits_nowhere: list[Operation]
    before: list[Operation]
    # The rest of the log at that point, if there is a log.
    logged: list[Commit] = []

    def __str__(self) -> str:
        lines = [f"{self.key}: no order explains these answers", f"  state {self.state}", "  after"]
        lines += [f"    {operation}" for operation in self.before]
        lines += ["  none of", *(f"    {each}" for each in self.fits_nowhere)]
        return "\n".join([*lines, *(f"  left in the log {each}" for each in self.logged)])


class History:
    """All operations since the last ``restart``, by key.

    A key is any name that identifies an item.
    """

    def __init__(self) -> None:
        self._now = 0
        self.initial: dict[str, State] = {}
        self.operations: dict[str, list[Operation]] = {}

    def tick(self) -> int:
        """The next moment; every request and every answer has a unique one."""
        self._now += 1
        return self._now

    def invoke(self, client: str, key: str, request: Request) -> Operation:
        """Record a request before it is sent."""
        operation = Operation(client, request, self.tick())
        self.operations.setdefault(key, []).append(operation)
        return operation

    def answer(self, operation: Operation, outcome: Outcome) -> None:
        """Record the answer as soon as it arrives. Don't call this without an answer."""
        if not isinstance(outcome, Unanswered):
            operation.answered = self.tick()
        operation.outcome = outcome

    def withdraw(self, key: str, operation: Operation) -> None:
        """Remove an operation that the server refused without effect, such as a throttled one."""
        self.operations[key].remove(operation)

    def observe(self, items: dict[str, Item]) -> None:
        """Record a scan of all items, without other requests in flight.

        Every key of the history that the scan did not return was read as missing.
        """
        for key in self.operations.keys() | self.initial.keys() | items.keys():
            operation = self.invoke("scan", key, Read())
            self.answer(operation, Found(items.get(key)))

    def restart(self, items: dict[str, Item]) -> None:
        """Forget all operations and start from these items; call ``check`` before."""
        self.initial = dict(items)
        self.operations = {}


def check(
    history: History, projections: dict[str, Callable[[Item], State]] | None = None
) -> list[Violation]:
    """The keys whose operations have no possible order; empty if all have one."""
    found = [
        check_key(key, history.initial.get(key), operations, projections or {})
        for key, operations in history.operations.items()
    ]
    return [violation for violation in found if violation is not None]


def check_key(
    key: str,
    initial: State,
    operations: Sequence[Operation],
    projections: dict[str, Callable[[Item], State]],
    log: Sequence[Commit] | None = None,
) -> Violation | None:
    """Search an order of one key's operations, and of its log if there is one.

    A configuration has the set of operations done so far as bits of a number, the item's state, and
    the number of log entries used. If two configurations are equal except for operations without an
    answer, the search continues only from the one with fewer of these.
    """
    operations = sorted(operations, key=lambda operation: operation.invoked)
    waiting = _waiting_for_tokens(operations, initial)
    must = sum(
        1 << position
        for position, operation in enumerate(operations)
        if not isinstance(operation.outcome, Unanswered)
    )
    seen: dict[tuple[int, int, bytes], list[int]] = {}
    stack: list[tuple[int, State, int, tuple[int, ...]]] = [(0, initial, 0, ())]
    deepest = stack[0]
    while stack:
        done, state, logged, order = stack.pop()
        looks = _reads_and_refusals(operations, done, state, projections)
        done |= sum(1 << position for position in looks)
        order = (*order, *looks)[-_SHOWN:]
        if done & must == must and (log is None or logged == len(log)):
            return None
        if (done & must).bit_count() >= (deepest[0] & must).bit_count():
            deepest = (done, state, logged, order)
        used = done & ~must
        mark = (done & must, logged, msgspec.json.encode(state, order="sorted"))
        before = seen.setdefault(mark, [])
        if any(not other & ~used for other in before):
            continue
        before.append(used)
        shown = waiting.get(_token(state), 0)
        for position in _candidates(operations, done):
            explained, after = _step(operations[position], state, projections)
            if not explained:
                continue
            changed = after != state
            if shown & ~(done | 1 << position) and _token(after) != _token(state):
                continue
            if changed and log is not None and log[logged : logged + 1] != [Commit(state, after)]:
                continue
            if changed or isinstance(operations[position].outcome, Done):
                following = (done | 1 << position, after, logged + changed, (*order, position))
                stack.append(following)
    done, state, logged, order = deepest
    return Violation(
        key,
        state,
        [operations[position] for position in _next(operations, done)],
        [operations[position] for position in order],
        list(log or ())[logged:],
    )


def _waiting_for_tokens(operations: Sequence[Operation], initial: State) -> dict[str | None, int]:
    """By token: the operations, as bits, that must happen while the item has that token.

    The result omits tokens that the item can get again: tokens of two writes, and no token.
    """
    given = Counter(_given_token(operation.request) for operation in operations)
    given[_token(initial)] += 1
    waiting: dict[str | None, int] = {}
    for position, operation in enumerate(operations):
        token = _token_before(operation)
        if token is not None and given[token] <= 1:
            waiting[token] = waiting.get(token, 0) | 1 << position
    return waiting


def _given_token(request: Request) -> str | None:
    if isinstance(request, Put):
        return _token(request.item)
    return _token(request.sets) if isinstance(request, Update) else None


def _token_before(operation: Operation) -> str | None:
    """The token of the item before the operation, if its outcome shows it."""
    request, outcome = operation.request, operation.outcome
    if isinstance(outcome, Found | Refused):
        return _token(outcome.item)
    if not isinstance(outcome, Done) or isinstance(request, Read):
        return None
    if isinstance(request.condition, Expected):
        return request.condition.token
    return _token(outcome.returned) if outcome.images == "ALL_OLD" else None


def _token(state: State) -> str | None:
    if state is None or TOKEN not in state:
        return None
    token: str = state[TOKEN]["S"]
    return token


def _candidates(operations: Sequence[Operation], done: int) -> list[int]:
    """The operations that may come next; optional ones are tried last."""
    return sorted(
        _next(operations, done),
        key=lambda position: (
            not isinstance(operations[position].outcome, Unanswered),
            -position,
        ),
    )


def _reads_and_refusals(
    operations: Sequence[Operation],
    done: int,
    state: State,
    projections: dict[str, Callable[[Item], State]],
) -> list[int]:
    """The reads and refused writes that the state explains.

    The order can always have them next, because they change nothing.
    """
    found: list[int] = []
    again = True
    while again:
        again = False
        for position in _next(operations, done):
            operation = operations[position]
            if isinstance(operation.outcome, Found | Refused):
                explained, _ = _step(operation, state, projections)
                if explained:
                    done |= 1 << position
                    found.append(position)
                    again = True
    return found


def _next(operations: Sequence[Operation], done: int) -> list[int]:
    """The operations that may come next: those requested before the first remaining answer."""
    deadline = NEVER
    found = []
    first = (~done & (done + 1)).bit_length() - 1
    for position in range(first, len(operations)):
        if done >> position & 1:
            continue
        operation = operations[position]
        if operation.invoked > deadline:
            break
        deadline = min(deadline, operation.answered)
        found.append(position)
    return found


def _step(
    operation: Operation, state: State, projections: dict[str, Callable[[Item], State]]
) -> tuple[bool, State]:
    """Whether the state explains the operation's outcome, and the state after it."""
    request, outcome = operation.request, operation.outcome
    if isinstance(request, Read):
        shown = state
        if request.index is not None and state is not None:
            shown = projections[request.index](state)
        return isinstance(outcome, Unanswered) or outcome == Found(shown), state
    if not holds(request.condition, state):
        fits = isinstance(outcome, Unanswered) or (
            isinstance(outcome, Refused) and (not outcome.shown or outcome.item == state)
        )
        return fits, state
    after = apply(request, state)
    if isinstance(outcome, Done):
        image = {"NONE": None, "ALL_OLD": state, "ALL_NEW": after}[outcome.images]
        return outcome.returned == image, after
    return isinstance(outcome, Unanswered), after


def holds(condition: Anything | Expected, state: State) -> bool:
    """Whether a write's condition is true for the item."""
    if isinstance(condition, Anything):
        return True
    return (state[TOKEN]["S"] if state is not None else None) == condition.token


def apply(request: Put | Update | Delete, state: State) -> State:
    """The item after a write whose condition holds."""
    if isinstance(request, Put):
        return request.item
    if isinstance(request, Delete):
        return None
    item = {**(state if state is not None else request.key), **request.sets}
    for name in request.removes:
        item.pop(name, None)
    for name in request.counts:
        item[name] = {"N": str(Decimal(item.get(name, {"N": "0"})["N"]) + 1)}
    return item


def index_violations(
    name: str, items: Iterable[Item], rows: Iterable[Item], projection: Callable[[Item], State]
) -> list[str]:
    """The differences between an index's rows and those that the table's items require."""
    expected = sorted(
        msgspec.json.encode(row, order="sorted")
        for row in map(projection, items)
        if row is not None
    )
    found = sorted(msgspec.json.encode(row, order="sorted") for row in rows)
    missing, extra = _minus(expected, found), _minus(found, expected)
    return [f"{name}: missing {row.decode()}" for row in missing] + [
        f"{name}: not in the table {row.decode()}" for row in extra
    ]


def _minus(some: list[bytes], others: list[bytes]) -> list[bytes]:
    rest = list(some)
    for other in others:
        if other in rest:
            rest.remove(other)
    return rest

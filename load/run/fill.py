"""Writes the items that exist before a run begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from dynactor.load.run.outcomes import THROTTLES
from dynactor.load.wire.answers import Answer
from dynactor.load.work.bodies import Bodies
from dynactor.load.work.operations import Dialogue
from dynactor.load.work.plan import Plan

# The maximum of BatchWriteItem.
ITEMS_TO_A_REQUEST: Final = 25
_ATTEMPTS: Final = 1_000
_FAILURES: Final = 3

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class CannotFill(Exception):
    """The server refuses the items; the message has its answer."""


def fillings(plan: Plan, worker: int, bodies: Bodies) -> Iterator[Dialogue]:
    """The worker's share of all items, in their first version."""
    first = worker * plan.keys // plan.workers
    end = (worker + 1) * plan.keys // plan.workers
    stamps = (0,) * plan.fields
    for start in range(first, end, ITEMS_TO_A_REQUEST):
        numbers = range(start, min(start + ITEMS_TO_A_REQUEST, end))
        yield _fill(bodies, bodies.batch_write((number, 0, stamps) for number in numbers))


def _fill(bodies: Bodies, request: bytes) -> Dialogue:
    """Repeats until all is written, because a repeated put is harmless."""
    failures_left = _FAILURES
    for _ in range(_ATTEMPTS):
        answer: Answer = yield request
        if answer.error:
            failures_left -= answer.error not in THROTTLES
            if (answer.is_refusal and answer.error not in THROTTLES) or not failures_left:
                text = answer.body.decode(errors="replace")
                raise CannotFill(f"The table can't be filled: {answer.error}: {text}")
            continue
        left = _decode(answer.body).get("UnprocessedItems")
        if not left:
            return ""
        requests = [_encode(each).decode() for of_table in left.values() for each in of_table]
        request = bodies.batch_of(",".join(requests))
    raise CannotFill(f"no success in {_ATTEMPTS:,} attempts; the last answer is {answer!r:.300}")

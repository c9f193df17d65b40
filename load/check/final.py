"""Reads every written item again after the run, when all writes are answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from time import monotonic

import msgspec

from dynactor.load.check.findings import Finding
from dynactor.load.check.ledger import Ledger
from dynactor.load.check.operations import CheckedOperations
from dynactor.load.work.bodies import Bodies
from dynactor.load.work.operations import Dialogue
from dynactor.load.work.plan import Plan
from dynactor.load.work.records import Records, Seen

_decode = msgspec.json.Decoder().decode


def read_back(operations: CheckedOperations, ledger: Ledger) -> Iterator[Dialogue]:
    """A consistent get of each item."""
    return map(operations.read_back, ledger.numbers())


def index_settled(
    plan: Plan, records: Records, bodies: Bodies, ledger: Ledger
) -> Iterator[Dialogue]:
    """The global index, queried until it matches the items, or until the deadline."""
    by_category: defaultdict[str, list[int]] = defaultdict(list)
    for number in ledger.numbers():
        by_category[records.category(number)].append(number)
    give_up_at = monotonic() + plan.index_deadline_seconds
    for numbers in by_category.values():
        yield _settle(numbers, records, bodies, ledger, give_up_at)


def _settle(
    numbers: Sequence[int], records: Records, bodies: Bodies, ledger: Ledger, give_up_at: float
) -> Dialogue:
    while True:
        shown: dict[int, Seen] = {}
        start_key = b""
        while True:
            answer = yield bodies.whole_category(numbers[0], start_key)
            if answer.error:
                return answer.error
            page = _decode(answer.body)
            for seen in map(records.recognize, page["Items"]):
                if seen is not None:
                    shown[seen.number] = seen
            if "LastEvaluatedKey" not in page:
                break
            start_key = msgspec.json.encode(page["LastEvaluatedKey"])
        behind = [number for number in numbers if not ledger.is_current(number, shown.get(number))]
        if not behind:
            return ""
        if monotonic() > give_up_at:
            for number in behind:
                text = f"the global index still shows {shown.get(number)}"
                ledger.findings.note(Finding("lost", number, text))
            return ""

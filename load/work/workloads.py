"""Named mixes of operations: YCSB's six, and one for each single operation.

https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct

OperationName = Literal[
    "get",
    "put",
    "update",
    "conditional-put",
    "delete",
    "insert",
    "read-modify-write",
    "query",
    "range",
    "lsi-query",
    "gsi-query",
    "batch-get",
    "batch-write",
    "transact-get",
    "transact-write",
]

OPERATIONS: Final[tuple[str, ...]] = get_args(OperationName)


_MEANINGS: Final[dict[OperationName, str]] = {
    "get": "GetItem",
    "put": "PutItem of an existing item",
    "update": "UpdateItem of one field and of the local index's sort key",
    "conditional-put": "PutItem with a condition that is true",
    "delete": "DeleteItem of an item that may not exist",
    "insert": "PutItem of a new item",
    "read-modify-write": "GetItem, then UpdateItem; the latency is that of both",
    "query": "Query of the first items of a collection",
    "range": "Query of some items from a sort key on: YCSB's scan",
    "lsi-query": "Query of a local index",
    "gsi-query": "Query of a global index",
    "batch-get": "BatchGetItem",
    "batch-write": "BatchWriteItem of whole items",
    "transact-get": "TransactGetItems",
    "transact-write": "TransactWriteItems of whole items",
}


class Workload(Struct, frozen=True):
    """A mix and its settings. ``query_items`` is None for the usual number."""

    mix: Mapping[str, float]
    key_choice: str = "uniform"
    query_items: int | None = None
    meaning: str = ""


WORKLOADS: Final[dict[str, Workload]] = {
    "ycsb-a": Workload({"get": 50, "update": 50}, "zipfian", meaning="update heavy"),
    "ycsb-b": Workload({"get": 95, "update": 5}, "zipfian", meaning="read mostly"),
    "ycsb-c": Workload({"get": 100}, "zipfian", meaning="read only"),
    "ycsb-d": Workload({"get": 95, "insert": 5}, "latest", meaning="read the newest items"),
    "ycsb-e": Workload({"range": 95, "insert": 5}, "zipfian", 100, "short ranges"),
    "ycsb-f": Workload(
        {"get": 50, "read-modify-write": 50}, "zipfian", meaning="read, modify, write"
    ),
    **{name: Workload({name: 100}, meaning=meaning) for name, meaning in _MEANINGS.items()},
}


class UnknownMix(ValueError):
    """The text is not a mix of operations; the message shows a valid one."""


def parse_mix(text: str) -> dict[str, float]:
    """Shares by operation, as in ``get=90,put=10``.

    Raises:
        UnknownMix: the text is invalid.
    """
    mix: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.strip().partition("=")
        try:
            mix[name] = float(share)
        except ValueError:
            raise UnknownMix(
                f"{part.strip()!r} is not a share: give a mix such as get=90,put=10"
            ) from None
        if name not in OPERATIONS:
            raise UnknownMix(f"{name!r} is not an operation; choose one of {', '.join(OPERATIONS)}")
        if not 0 < mix[name] < float("inf"):
            raise UnknownMix(f"{part.strip()!r}: a share is a number above 0")
    return mix

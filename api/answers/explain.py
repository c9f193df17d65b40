"""The explanation of a request in a header of its answer: its cost, reasons, cheaper alternatives.

The header is one line of ASCII: JSON with names in the style of DynamoDB's API. Clients and proxies
limit a head to 4 or 8 KB. A longer explanation has counts instead of details, or only the sum of
all tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct, json, structs

from dynactor.model.advice.explained_costs import Cheaper, Paid, TableCost, WrittenEntry
from dynactor.model.advice.explanation import explain
from dynactor.model.limits import KIB

REQUEST_HEADER: Final = "X-Dynactor-Explain"
RESPONSE_HEADER: Final = "X-Dynactor-Explanation"
# The explanation fits into a head of 4 KB, the default limit of proxies.
EXPLANATION_BYTES: Final = 3 * KIB
# The headers of most answers.
NO_EXPLANATIONS: Final[Mapping[str, str]] = MappingProxyType({})

_MOST_ADVICE: Final = 3


class _IndexCounts(Struct, frozen=True, rename="pascal"):
    """The writes of one index and their units; writes without effect are left out."""

    index: str
    writes: int
    units: int


class _TableCounts(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """A table's part without its details."""

    table_name: str
    capacity_units: float
    reads: int = 0
    read_bytes: int = 0
    read_blocks: int = 0
    fetched_items: int = 0
    writes: int = 0
    written_bytes: int = 0
    indexes: tuple[_IndexCounts, ...] = ()


class _ExplanationSummary(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """The short form of an explanation that is too long."""

    operation: str
    capacity_units: float
    summarized: bool
    table_count: int
    tables: tuple[_TableCounts, ...] = ()
    cheaper: tuple[Cheaper, ...] = ()
    cancelled: bool = False


def is_wanted(header: str) -> bool:
    """Whether a request with this header wants an explanation."""
    return header.strip().lower() == "true"


def header_text(operation: str, paid: Sequence[Paid]) -> str:
    """The header's text for these costs, at most ``EXPLANATION_BYTES`` long."""
    explanation = explain(operation, paid)
    summary = _ExplanationSummary(
        explanation.operation,
        explanation.capacity_units,
        summarized=True,
        table_count=len(explanation.tables),
        tables=tuple(map(_table_counts, explanation.tables)),
        cheaper=explanation.cheaper[:_MOST_ADVICE],
        cancelled=explanation.cancelled,
    )
    for candidate in (explanation, summary, structs.replace(summary, tables=(), cheaper=())):
        text = json.encode(candidate).decode("ascii")
        if len(text) <= EXPLANATION_BYTES:
            return text
    raise AssertionError("the shortest form, four numbers, is too long")


def _table_counts(cost: TableCost) -> _TableCounts:
    indexes: dict[str, _IndexCounts] = {}
    for written in cost.writes:
        for index in written.indexes:
            if index.change != "none":
                indexes[index.index] = _added(indexes, index, written.count)
    return _TableCounts(
        cost.table_name,
        cost.capacity_units,
        reads=sum(read.count for read in cost.reads),
        read_bytes=sum(read.bytes * read.count for read in cost.reads),
        read_blocks=sum(read.blocks * read.count for read in cost.reads),
        fetched_items=sum(read.fetched.items * read.count for read in cost.reads if read.fetched),
        writes=sum(written.count for written in cost.writes),
        written_bytes=sum(written.bytes * written.count for written in cost.writes),
        indexes=tuple(indexes.values()),
    )


def _added(counts: dict[str, _IndexCounts], write: WrittenEntry, times: int) -> _IndexCounts:
    before = counts.get(write.index) or _IndexCounts(write.index, 0, 0)
    return _IndexCounts(write.index, before.writes + times, before.units + write.units * times)

"""One page of a Query or Scan: its rows, its end, and its cost.

The caller reads the rows and adds them one by one. Rules S41-S47, S106, S107.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from dynactor.model import capacity
from dynactor.model.capacity import IndexKind, IndexUnits, RangeRead, Receipt
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.projection import Projector
from dynactor.model.limits import PAGE_BYTES, READ_UNIT_BYTES
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem


class PageRules(Struct, frozen=True):
    """A request's rules for a page.

    ``fetch``: for each entry of a local index, the whole item is read from the table (S13).
    ``limit`` bounds the rows evaluated, not those returned.
    """

    limit: int | None = None
    filter: Condition | None = None
    projector: Projector | None = None
    count_only: bool = False
    fetch: bool = False


class Page(Struct, frozen=True):
    """A finished page. ``items`` are JSON texts; ``last`` is the LastEvaluatedKey, if any."""

    items: list[bytes]
    count: int
    scanned_count: int
    last: Item | None
    receipt: Receipt


class PageBuilder:
    """Takes rows in order until the page is full.

    The row with which the sum of sizes reaches or passes 1 MB is the last one. With fetches, the
    sum counts reads in blocks of 4 KB: all entries together, each item on its own.
    """

    def __init__(self, rules: PageRules) -> None:
        self._rules = rules
        self._items: list[bytes] = []
        self._count = 0
        self._scanned_count = 0
        self._entry_bytes = 0
        self._fetched_blocks = 0
        # Bytes of the partitions that were read to the end.
        self._partition_bytes: list[int] = []
        self._finished_blocks = 0
        self._finished_bytes = 0
        self.last: StoredItem | None = None
        self.full = False

    @property
    def rows_left(self) -> int | None:
        """The number of rows that the limit still allows; None without a limit."""
        limit = self._rules.limit
        return None if limit is None else limit - self._scanned_count

    @property
    def scanned_count(self) -> int:
        """The number of rows that were evaluated."""
        return self._scanned_count

    @property
    def scanned_bytes(self) -> int:
        """The sizes of these rows together."""
        return self._finished_bytes + self._entry_bytes

    @property
    def bytes_left(self) -> int:
        """The size of the rows that still fit into a page without fetches."""
        return PAGE_BYTES - self.scanned_bytes

    def add(self, entry: StoredItem, fetched: StoredItem | None = None) -> None:
        """Evaluate the next row; ``fetched`` is the whole item if the rules request a fetch."""
        assert not self.full
        rules = self._rules
        self.last = entry
        self._scanned_count += 1
        self._entry_bytes += entry.size_bytes
        read_bytes = self._finished_bytes + self._entry_bytes
        if fetched is not None:
            self._fetched_blocks += capacity.read_blocks(fetched.size_bytes)
            blocks = capacity.read_blocks(read_bytes) + self._fetched_blocks
            read_bytes = blocks * READ_UNIT_BYTES
        self.full = read_bytes >= PAGE_BYTES or self._scanned_count == rules.limit
        source = fetched or entry
        if rules.filter is not None and not rules.filter.evaluate(source.item):
            return
        self._count += 1
        if rules.count_only:
            return
        self._items.append(
            source.data
            if rules.projector is None
            else items.encode(rules.projector.project(source.item))
        )

    def add_all(self, entries: Sequence[StoredItem]) -> None:
        """Evaluate rows until the page is full or its limit is reached."""
        rules = self._rules
        if rules.filter is not None or rules.projector is not None or rules.count_only:
            for entry in entries:
                self.add(entry)
                if self.full:
                    return
            return
        # Items are returned as stored, so no item needs a call of its own.
        assert not self.full
        left_bytes = PAGE_BYTES - self._finished_bytes - self._entry_bytes
        for taken, entry in enumerate(entries, start=1):
            left_bytes -= entry.size_bytes
            if left_bytes <= 0:
                entries = entries[:taken]
                break
        self.last = entries[-1]
        self._items += [entry.data for entry in entries]
        self._count += len(entries)
        self._scanned_count += len(entries)
        self._entry_bytes = PAGE_BYTES - self._finished_bytes - left_bytes
        self.full = left_bytes <= 0 or self._scanned_count == rules.limit

    def add_fetched(self, entries: Sequence[StoredItem], fetched: Sequence[StoredItem]) -> None:
        """Evaluate rows like ``add_all``, each with its whole item."""
        for entry, item in zip(entries, fetched, strict=True):
            self.add(entry, item)
            if self.full:
                return

    def end(self) -> None:
        """End the page after the last row, even if the range continues."""
        assert self.last is not None
        self.full = True

    @property
    def blocks(self) -> int:
        """The blocks of 4 KB to charge if reading ends now; wrong for a finished page."""
        unfinished = capacity.read_blocks(self._entry_bytes) or 1
        return self._finished_blocks + unfinished + self._fetched_blocks

    def finish_partition(self) -> None:
        """Count the bytes read from a partition; a Scan rounds up the sum of each partition."""
        self._partition_bytes.append(self._entry_bytes)
        self._finished_blocks += capacity.read_blocks(self._entry_bytes) or 1
        self._finished_bytes += self._entry_bytes
        self._entry_bytes = 0

    def page(
        self,
        *,
        consistent: bool,
        last: Item | None,
        index: tuple[str, IndexKind] | None,
        is_scan: bool,
    ) -> Page:
        """The page, after all rows are added and the last partition is finished."""
        units = capacity.read_units(self._finished_blocks, consistent=consistent)
        fetched_units = capacity.read_units(self._fetched_blocks, consistent=consistent)
        name, kind = index or (None, None)
        work = RangeRead(
            is_scan,
            name,
            kind,
            consistent,
            self._scanned_count,
            self._count,
            tuple(self._partition_bytes),
            units,
            self._scanned_count if self._rules.fetch else 0,
            self._fetched_blocks,
            fetched_units,
        )
        if index is None:
            receipt = Receipt(read_units=units, work=(work,))
        else:
            receipt = Receipt(
                read_units=fetched_units,
                indexes=(IndexUnits(*index, read_units=units),),
                work=(work,),
            )
        return Page(self._items, self._count, self._scanned_count, last, receipt)

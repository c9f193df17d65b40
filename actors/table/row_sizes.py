"""The sizes of rows in earlier pages, from which the size of the next read is estimated.

A page reads all its rows in one call, because a second call may cost another round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dynactor.model.limits import KIB
from dynactor.model.reads.page import PageBuilder

# Read this much more, because rows may differ in size from earlier rows.
_MORE: Final = 1.25
_MORE_ROWS: Final = 256
_MORE_BYTES: Final = 16 * KIB


class RowSizes(Struct):
    """The sizes of the rows of a table or an index.

    ``bytes_per_byte``: the bytes of a row for each byte of its item, as DynamoDB counts it.
    """

    row_bytes: float = KIB
    bytes_per_byte: float = 1.25
    # The average of the last batch of single items.
    item_bytes: float = KIB

    def bounds(self, bytes_left: int) -> tuple[int, int]:
        """The numbers of rows and of bytes to read, which very likely fill the rest of a page."""
        max_bytes = int(bytes_left * self.bytes_per_byte) + _MORE_BYTES
        return int(max_bytes / self.row_bytes * _MORE) + _MORE_ROWS, max_bytes

    def learn(self, rows: int, rows_bytes: int, builder: PageBuilder) -> None:
        """Update the averages with the rows that were read for a page."""
        self.row_bytes = rows_bytes / rows
        item_bytes = builder.scanned_bytes / builder.scanned_count
        self.bytes_per_byte = self.row_bytes / max(1, item_bytes)

    def learn_items(self, sizes_bytes: Sequence[int]) -> None:
        """Update the average size of single items, unless none exists."""
        if sizes_bytes:
            self.item_bytes = max(1.0, sum(sizes_bytes) / len(sizes_bytes))

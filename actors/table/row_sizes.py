"""The sizes of rows in earlier pages, which tell how many rows the next page needs.

A page asks for all its rows in one call, because a second call may be a round trip and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dynactor.model.limits import KIB
from dynactor.model.page import PageBuilder

# Room for rows that differ from those before.
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
        """The numbers of rows and of their bytes that very likely fill a page with this space."""
        max_bytes = int(bytes_left * self.bytes_per_byte) + _MORE_BYTES
        return int(max_bytes / self.row_bytes * _MORE) + _MORE_ROWS, max_bytes

    def learn(self, rows: int, rows_bytes: int, builder: PageBuilder) -> None:
        """Learn from the rows that were read for a page."""
        self.row_bytes = rows_bytes / rows
        item_bytes = builder.scanned_bytes / builder.scanned_count
        self.bytes_per_byte = self.row_bytes / max(1, item_bytes)

    def learn_items(self, sizes_bytes: Sequence[int]) -> None:
        """Learn from the rows of single items, if any exists."""
        if sizes_bytes:
            self.item_bytes = max(1.0, sum(sizes_bytes) / len(sizes_bytes))

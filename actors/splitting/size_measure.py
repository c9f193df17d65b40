"""Measures the distribution of a partition's bytes, in the background."""

from __future__ import annotations

import asyncio
from typing import Final

from dynactor.model.key_conditions.key_range import KeyRange
from dynactor.model.key_conditions.split_point import SizeProfile
from dynactor.model.limits import KIB
from dynactor.storage import codec, key_layout
from dynactor.storage.row_pages import pages_in
from dynactor.storage.store import Store

_PAGE_ROWS: Final = 512
_PAGE_BYTES: Final = 128 * KIB
# Number of boundaries to choose from, which determines the precision.
_BOUNDARIES: Final = 1_024


async def measure(
    store: Store, prefix: bytes, key_range: KeyRange, expected_bytes: int, overhead_bytes: int
) -> SizeProfile:
    """Read a partition's rows from durable views, page by page, with a pause after each page.

    ``overhead_bytes`` is added to the size of each row. Raises ``StoreError``.
    """
    profile = SizeProfile(max(1, expected_bytes // _BOUNDARIES))
    start = prefix + key_range.start
    end = key_layout.prefix_end(prefix) if key_range.end is None else prefix + key_range.end
    loop = asyncio.get_running_loop()
    began = loop.time()
    async for rows in pages_in(
        store.durable, start, end, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES
    ):
        for row in rows:
            profile.add(row.key[len(prefix) :], codec.size_bytes(row.value) + overhead_bytes)
        # Requests have priority, so pause as long as the page took.
        await asyncio.sleep(loop.time() - began)
        began = loop.time()
    return profile

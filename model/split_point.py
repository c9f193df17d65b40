"""Where a partition is divided: at a position, a bare hash where that will do.

A boundary within an item collection, by sort key, is for one that is too large, or too busy, for a
partition of its own (S137, S139); never on a table with local indexes (S74), whose entries stand in
another order than its items.
"""

from __future__ import annotations

from model.key import HASH_BYTES


def divides_collection(at: bytes) -> bool:
    """Whether a boundary lies within an item collection."""
    return len(at) > HASH_BYTES

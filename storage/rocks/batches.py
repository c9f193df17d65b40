"""The engine's batch of a commit, and whether it frees space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rocksdict import WriteBatch

from dynactor.storage.store import (
    Group,
)

# A commit of several heads may use the reserve of a full disk if none is larger than this.
_SMALL_HEAD_BYTES: Final = 32


def frees_space(groups: Sequence[Group]) -> bool:
    """Whether a commit frees space on a full disk, so it may use the reserve."""
    if any(group.puts and not group.ranges for group in groups):
        return False
    if any(group.deletes or group.ranges or group.head is None for group in groups):
        return True
    # Checkpoints are small heads, and let logs be trimmed. A table's record is a large one.
    heads = [group.head or b"" for group in groups]
    return len(heads) == 1 or all(len(head) <= _SMALL_HEAD_BYTES for head in heads)


def write_batch(groups: Sequence[Group]) -> WriteBatch:
    """The engine's batch of these groups."""
    batch = WriteBatch(raw_mode=True)
    put, delete = batch.put, batch.delete
    for group in groups:
        for start, end in group.ranges:
            batch.delete_range(start, end)
        for key in group.deletes:
            delete(key)
        for key, value in group.puts:
            put(key, value)
        if group.head is None:
            delete(group.head_key)
        else:
            put(group.head_key, group.head)
    return batch

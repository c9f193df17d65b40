"""The names of the followers of a table's logs, in the keys of their checkpoints."""

from __future__ import annotations

from struct import Struct
from typing import Final

# In a name, in place of an index id.
EXPIRER: Final = 0xFFFF_FFFF
_DESTINATIONS: Final = 0xC000_0000
REPLAYS: Final = 0xFFFF_FFFE
_BACKUPS: Final = 0xFFFF_FFFD

_NUMBER: Final = Struct(">Q")
_INDEX_ID: Final = Struct(">I")


def index_subscriber(table_id: int, index_id: int) -> bytes:
    """The name of an index's followers in their checkpoints; ids are never reused."""
    return _NUMBER.pack(table_id) + _INDEX_ID.pack(index_id)


def expiry_subscriber(table_id: int) -> bytes:
    """The name of the followers that maintain a table's expiry times, in their checkpoints."""
    return index_subscriber(table_id, EXPIRER)


def destination_subscriber(table_id: int, destination_id: int) -> bytes:
    """The name of the followers that publish to a destination, in their checkpoints."""
    return index_subscriber(table_id, _DESTINATIONS + destination_id)


def replay_subscriber(table_id: int, replay_id: str) -> bytes:
    """The name of a replay in its checkpoints; ``replay_id`` is a hexadecimal number."""
    return index_subscriber(table_id, REPLAYS) + bytes.fromhex(replay_id)


def table_backup_subscriber(table_id: int, rows_id: int) -> bytes:
    """The name of a backup that is being created, in its checkpoints."""
    return index_subscriber(table_id, _BACKUPS) + _NUMBER.pack(rows_id)

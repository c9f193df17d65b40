"""Pauses of the server before it tries something again that nothing signals.

Commands pause by ``dynactor.model.back_off``. Settings of users stand with their options.
"""

from __future__ import annotations

from typing import Final

# The engine stalls writes, usually for milliseconds.
STALL_SECONDS: Final = 0.002
# The store refuses writes, for example because the disk is full.
REFUSED_SECONDS: Final = 0.1
# A change of the catalog failed, or the database is behind other nodes.
CATALOG_SECONDS: Final = 1.0
# A scan or a copy failed, and starts over.
SCAN_SECONDS: Final = 1.0
# An actor crashed too often.
RESTART_SECONDS: Final = 5.0
# An actor can't load its state, because the database can't be reached.
UNREACHABLE_SECONDS: Final = 1.0
# The store refused the deletion of expired items.
SWEEP_SECONDS: Final = 1.0
# An expired item is locked by a transaction, or damaged.
LOCKED_ITEM_SECONDS: Final = 0.25
DAMAGED_ITEM_SECONDS: Final = 60.0

# A connection to another node has ended.
NODE_LINK_SECONDS: Final = 0.5
# A node is not the home of a request's tables any more.
FORWARD_SECONDS: Final = 0.05
# No node leads, or tables can't move to their home now.
MOVE_SECONDS: Final = 0.1

# PostgreSQL can't be reached.
CONNECT_SECONDS: Final = 0.05
# Another server holds the lock of the ownership.
OWNERSHIP_SECONDS: Final = 0.1
# The outcome of a commit is still unknown.
DOUBT_SECONDS: Final = 1.0
# The rows of a deleted range could not be deleted.
DISCARD_SECONDS: Final = 1.0

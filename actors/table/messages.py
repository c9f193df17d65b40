"""What the database's actor is told of tables: by requests, and by itself."""

from __future__ import annotations

from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.state import TableState
from dynactor.model.tables.table import TableDefinition
from dynactor.model.tables.table_rules import TableEdit
from dynactor.model.tables.time_to_live import TimeToLiveChange


class CreateTable(Message[TableState], frozen=True):
    """Make a table; its ids, times and status are filled in."""

    definition: TableDefinition


class UpdateTable(Message[TableState], frozen=True):
    """Change a table's settings."""

    name: str
    edit: TableEdit


class DeleteTable(Message[TableState], frozen=True):
    """Delete a table and all its items."""

    name: str


class UpdateTimeToLive(Message[None], frozen=True):
    """Switch a table's time to live on or off."""

    name: str
    change: TimeToLiveChange


class KeepStreams(Message[None], frozen=True):
    """It is time to roll shards and to trim logs."""

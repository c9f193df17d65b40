"""The messages about tables to the database's actor, from requests and from itself."""

from __future__ import annotations

from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.state import TableState
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.tables.table_rules import TableEdit
from dynactor.model.tables.time_to_live import TimeToLiveChange


class CreateTable(Message[TableState], frozen=True):
    """Create a table; the actor fills in its ids, times and status."""

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
    """Roll shards and trim logs that are due."""

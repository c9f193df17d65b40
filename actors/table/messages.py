"""The messages about tables to the database's actor, from requests and from itself."""

from __future__ import annotations

from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.state import TableState
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.tables.time_to_live import TimeToLiveChange


class OwnMessage(Message[None], frozen=True):
    """A message of the database's actor to itself, which it repeats if the store refuses it."""


class UrgentMessage(Message[None], frozen=True):
    """A message that is handled before all others, even if the mailbox is full."""


class CreateTable(Message[TableState], frozen=True):
    """Create a table; the actor sets ids, times and status. Raises ``ResourceInUseException``."""

    definition: TableDefinition


class UpdateTable(Message[TableState], frozen=True):
    """Change a table's settings.

    Raises ``ResourceNotFoundException``, ``ResourceInUseException`` unless the table is ACTIVE, or
    as ``table_edits.apply_edit``.
    """

    name: str
    edit: TableEdit


class DeleteTable(Message[TableState], frozen=True):
    """Delete a table and all its items.

    Raises ``ResourceNotFoundException``, ``ResourceInUseException``, or ``ValidationException`` if
    the table is protected.
    """

    name: str


class UpdateTimeToLive(Message[None], frozen=True):
    """Switch a table's time to live on or off.

    Raises ``ResourceNotFoundException``, ``ResourceInUseException``, or as
    ``dynactor.model.tables.time_to_live.changed``.
    """

    name: str
    change: TimeToLiveChange


class KeepStreams(Message[None], frozen=True):
    """Do the periodic work of all parts: roll shards, trim logs and delete what is old."""

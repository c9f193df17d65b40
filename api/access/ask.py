"""One action on a resource that a request asks for, and the parts that the rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from dynactor.actors.database.database import Database
from dynactor.actors.table.table import Table
from dynactor.api.access.facts import ActionFacts, RequestFacts
from dynactor.model.errors import ResourceNotFoundException


class Ask(NamedTuple):
    """An action on a resource; the action has the prefix of its service, such as ``dynamodb:``."""

    action: str
    resource: str
    facts: ActionFacts


class Asking(NamedTuple):
    """A decoded request, for which the asks are wanted."""

    operation: str
    request: Any
    database: Database
    facts: RequestFacts

    @property
    def action(self) -> str:
        """The action with the operation's name."""
        return f"dynamodb:{self.operation}"

    def arn(self, rest: str) -> str:
        """The ARN of a resource of the database, such as ``table/Music``."""
        settings = self.database.settings
        return f"arn:aws:dynamodb:{settings.region}:{settings.account_id}:{rest}"

    def table_arn(self, name: str) -> str:
        """The ARN of a table."""
        return self.arn(f"table/{name}")

    def table_in_any_state(self, name: str) -> Table | None:
        """The table with this name, even while it is created or deleted; None if there is none."""
        try:
            return self.database.table_in_any_state(name)
        except ResourceNotFoundException:
            return None


AskRule: TypeAlias = Callable[[Asking], Iterable[Ask]]

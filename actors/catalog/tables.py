"""Tables by name, and the errors for tables that are missing or busy."""

from __future__ import annotations

from dynactor.actors.table.table import Table
from dynactor.model.errors import ResourceNotFoundException
from dynactor.model.tables.table_rules import in_use


class Tables(dict[str, Table]):
    """All tables, whatever their state. Only the database's actor adds and removes them.

    If several nodes share the tables, these are the tables of one of them. ``elsewhere`` then has
    the epochs of the other tables' shares, and ``groups`` the groups of tables with one home.
    """

    def __init__(self) -> None:
        super().__init__()
        self.elsewhere: dict[str, int] = {}
        self.groups: dict[str, str] = {}

    def named(self, name: str) -> Table:
        """The table with this name in any state; raises ``ResourceNotFoundException``."""
        table = self.get(name)
        if table is None:
            at = "is at another node" if name in self.elsewhere else "not found"
            raise ResourceNotFoundException(f"Requested resource not found: Table: {name} {at}")
        return table

    def settled(self, name: str) -> Table:
        """The table with this name, unless it is being created or deleted.

        Raises ``ResourceNotFoundException``, or ``ResourceInUseException`` if the table is being
        created or deleted.
        """
        table = self.named(name)
        if table.definition.status in ("CREATING", "DELETING"):
            raise in_use(table.definition)
        return table

    def consumed_units(self) -> float:
        """Units consumed by requests to all tables since the server started."""
        return sum(table.throttle.consumed_units for table in self.values())

    def has(self, table: Table) -> bool:
        """Whether a table is still open here."""
        return self.get(table.definition.name) is table

    def same(self, name: str, table_id: int) -> Table | None:
        """The table with this name, unless another one has been created under it since."""
        table = self.get(name)
        if table is None or table.definition.table_id != table_id:
            return None
        return table

"""The tables by name, and what who asks for one is told of those that can't be had."""

from __future__ import annotations

from dynactor.actors.table.table import Table
from dynactor.model.errors import ResourceNotFoundException
from dynactor.model.tables.table_rules import in_use


class Tables(dict[str, Table]):
    """All tables, whatever their state. The database's actor alone adds and removes them."""

    def named(self, name: str) -> Table:
        """The table of that name, though it may be in the making.

        Raises:
            ResourceNotFoundException: there is none.
        """
        table = self.get(name)
        if table is None:
            raise ResourceNotFoundException(
                f"Requested resource not found: Table: {name} not found"
            )
        return table

    def settled(self, name: str) -> Table:
        """The table of that name, which is neither being made nor being deleted.

        Raises:
            ResourceNotFoundException: there is none.
            ResourceInUseException: it is being made or deleted.
        """
        table = self.named(name)
        if table.definition.status in ("CREATING", "DELETING"):
            raise in_use(table.definition)
        return table

    def consumed_units(self) -> float:
        """Units consumed by requests to all tables since the server started."""
        return sum(table.throttle.consumed_units for table in self.values())

    def same(self, name: str, table_id: int) -> Table | None:
        """The table of that name, unless another has been made under it since."""
        table = self.get(name)
        if table is None or table.definition.table_id != table_id:
            return None
        return table

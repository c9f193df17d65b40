"""The units that a table and its indexes have served."""

from __future__ import annotations

from dynactor.model.definitions.table import TableDefinition


class Consumed:
    """The units that a table or an index has served since the server started."""

    __slots__ = ("read_units", "write_units")

    def __init__(self) -> None:
        self.read_units = 0.0
        self.write_units = 0.0


def counters_by_index(
    definition: TableDefinition, known: dict[str, Consumed]
) -> dict[str, Consumed]:
    """A counter for each global index; counters that exist are kept."""
    names = [index.definition.name for index in definition.global_indexes]
    return {name: known.get(name) or Consumed() for name in names}

"""The number of a table's changes that an index lacks."""

from __future__ import annotations

from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition


def index_lag_records(table: Table, index: IndexDefinition) -> int:
    """Maximum number of changes that an index lacks; 0 for an index without followers."""
    actors = table.followers.indexes.get(index.index_id)
    return actors.lag_records if actors else 0

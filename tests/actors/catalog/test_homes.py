"""The leader's database leaves the tables of other homes alone."""

from __future__ import annotations

import pytest

from dynactor.actors.catalog.homes import CloseTables, GiveTables, Share, TakeTables
from dynactor.model.errors import ResourceInUseException
from tests.support.databases.databases import running_database, table_definition

OTHER_SHARE = 1 << 32


async def test_the_name_of_a_table_with_another_home_is_in_use():
    async with running_database(share=Share()) as leader:
        await leader.create_table(table_definition())
        await leader.change_homes(CloseTables(("Thread",)))
        with pytest.raises(ResourceInUseException, match="Table already exists: Thread"):
            await leader.create_table(table_definition())
        await leader.change_homes(GiveTables(("Thread",), OTHER_SHARE))
        with pytest.raises(ResourceInUseException, match="Table already exists: Thread"):
            await leader.create_table(table_definition())
        ended = frozenset((OTHER_SHARE,))
        await leader.change_homes(TakeTables(("Thread",), ended))
        assert leader.runs("Thread")

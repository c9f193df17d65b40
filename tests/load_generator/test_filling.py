"""A table filled without HTTP equals, row by row, one that was filled by puts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import structs

from dynactor.load.run.one import make_caller
from dynactor.load.run.table import prepare
from dynactor.load.work.plan import Plan
from dynactor.load.work.records import Records
from dynactor.storage import key_layout
from dynactor.storage.catalog import decode_partition_head
from tests.load.scale.filler import fill
from tests.load.scale.tables import plan_of
from tests.support.servers.server import running_server
from tests.support.stores.store import disk_store

ITEMS = 400


@contextmanager
def served(directory: Path) -> Iterator[Plan]:
    with running_server(data_dir=directory) as server:
        yield structs.replace(plan_of(ITEMS, 300), endpoint=server.endpoint)
        server.stop()


async def rows(directory: Path) -> dict[bytes, bytes]:
    async with disk_store(directory) as store:
        page = await store.latest.page(b"", b"\xff", max_rows=1 << 30, max_bytes=1 << 30)
        return {row.key: row.value for row in page}


async def test_a_filled_table_has_the_rows_of_puts(tmp_path: Path) -> None:
    with served(tmp_path / "put") as plan:
        caller = make_caller(plan)
        await prepare(plan, caller, "auto")
        records = Records(plan)
        for number in range(plan.keys):
            item = msgspec.json.decode(records.item(number, 0, (0,) * plan.fields))
            error, _ = await caller.call("PutItem", {"TableName": plan.table, "Item": item})
            assert not error
    with served(tmp_path / "filled") as plan:
        await prepare(plan, make_caller(plan), "auto")
    told: list[int] = []
    await fill(tmp_path / "filled", plan, told.append, quiet_seconds=0)
    assert told[-1] == ITEMS

    put, filled = await rows(tmp_path / "put"), await rows(tmp_path / "filled")
    # Leave out the table's record, because its creation time and id differ, and the random key of
    # session tokens.
    for differs in (key_layout.table_record(plan.table), key_layout.SESSION_KEY):
        assert put.pop(differs) != filled.pop(differs)
    assert put == filled
    heads = [decode_partition_head(put[key]) for key in put if key[:1] == b"\x02"]
    assert len(heads) > 1
    assert sum(head.item_counts[0] for head in heads) == ITEMS

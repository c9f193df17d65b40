"""Splits of partitions at their homes, as the homes do when a partition is large or busy."""

from __future__ import annotations

from contextvars import copy_context
from random import Random
from typing import Final

import anyio

from dynactor.actors.database.database import Database
from dynactor.actors.splitting.messages import SplitPartition
from dynactor.model.errors import DynamoDBError
from dynactor.model.key_conditions.split_point import middle
from dynactor.storage.partition_map import PartitionMap
from dynactor.storage.store import StoreError
from tests.simulation.nodes.real_nodes import Cluster, Process
from tests.simulation.nodes.workload import TABLES, Workload
from tests.support.environment.simulated_loop import NODE

_MOST: Final = 10


async def split_partitions(cluster: Cluster, workload: Workload, draw: Random) -> None:
    """Split random partitions now and then."""
    splits = 0
    while not workload.is_enough and splits < _MOST:
        await anyio.sleep(draw.random() * 4)
        table = draw.choice(TABLES)
        for process in cluster.up():
            for database in _databases(process):
                if database.runs(table) and not process.is_suspended:
                    splits += 1
                    _start(cluster, process, database, table, draw)


def _databases(process: Process) -> list[Database]:
    """The open databases of a node: the leader's, and its share's."""
    node = process.node
    assert node is not None
    homes = [] if node.leadership is None else [node.leadership.databases.main]
    share = node._keeper and node._keeper.share
    return homes if share is None else [*homes, share.databases.main]


def _start(
    cluster: Cluster, process: Process, database: Database, table: str, draw: Random
) -> None:
    record = database.table(table).record
    index_id = draw.choice((0, *record.index_partitions))
    partitions = record.index_partitions[index_id] if index_id else record.partitions
    ranges = PartitionMap(partitions)
    number = draw.choice(ranges.numbers)
    point = middle(ranges.partition_range(number))
    if point is None:
        return

    async def split() -> None:
        try:
            await database.ask(SplitPartition(table, number, point.at, index_id=index_id))
        except (DynamoDBError, StoreError):
            # The table moves, or it is being split.
            return

    context = copy_context()
    context.run(NODE.set, process.queue)
    cluster.loop.create_task(split(), context=context)

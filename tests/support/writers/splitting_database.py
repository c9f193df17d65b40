"""The indexed tables, whose partitions are split by size and by load while clients write."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from tests.support.clients.wire import Connection, ConnectionLost
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.histories.history import Done, Item, Put
from tests.support.servers.server import Server
from tests.support.writers.crashes import address, connected
from tests.support.writers.indexed_database import IndexedDatabase, make_indexed_tables
from tests.support.writers.writers import Place, Writers

SPLIT_TABLE = "crash-a"
_SERVICE = "DynamoDBStreams"
_COLLECTIONS = 48
_ITEMS = 12
_PAYLOAD_BYTES = 8_000
_READERS = 8
_SEGMENTS = 4
_PAGE_ITEMS = 11
_POLL_SECONDS = 0.05
_SPLIT = re.compile(r"partition_split\W.*?reason\W+(asked for|[a-z]+)")


def _unchanged(collection: int, number: int) -> Place:
    return Place(SPLIT_TABLE, f"still{collection}", f"{number}")


class SplittingDatabase(IndexedDatabase):
    """One data directory with indexed tables whose partitions are split, over many kills.

    ``splits`` counts the splits by reason, ``refusals`` the requests that had no effect, ``scans``
    the completed parallel scans, and ``queries`` the queries of unchanged items.
    """

    def __init__(self, directory: Path, draw: Random, *options: str) -> None:
        super().__init__(directory, draw, *options)
        self.splits: Counter[str] = Counter()
        self.refusals = self.scans = self.queries = 0

    async def make_large(self) -> None:
        """Create the tables, and put large items that clients read often and never change.

        The items are too large for one partition, so the partition is split by size before the
        reads start. Splits by load are off meanwhile: they might make the partitions so small that
        none is split by size.
        """
        with self.running(split_heat_seconds="3600") as server:
            async with connected(server) as connection:
                await make_indexed_tables(connection)
                for collection in range(_COLLECTIONS):
                    await self._put_unchanged(connection, collection)
                deadline = monotonic() + HANG_SECONDS
                while "size" not in _SPLIT.findall(server.log):
                    assert monotonic() < deadline, server.log
                    await asyncio.sleep(_POLL_SECONDS)
            assert server.stop() == 0, server.log
            self._count_splits(server)

    async def _put_unchanged(self, connection: Connection, collection: int) -> None:
        for number in range(_ITEMS):
            place = _unchanged(collection, number)
            token = f"{place.pk}.{place.sk}"
            item: Item = {
                **place.key,
                "token": {"S": token},
                "rank": {"N": str(number)},
                "payload": {"S": token.ljust(_PAYLOAD_BYTES, "x")},
            }
            operation = self.history.invoke("still", place.name, Put(item))
            body = {"TableName": SPLIT_TABLE, "Item": item}
            answer = await connection.call("PutItem", body)
            assert answer.status == 200, answer
            self.history.answer(operation, Done())

    async def split_round(self, most_answers: int, *, graceful: bool = False) -> list[str]:
        """Start a server, compare its data, write, query, scan, kill it; return the differences.

        The kill happens at a random moment. ``graceful``: instead of a kill, the server is stopped
        as by an operator, and must exit normally.
        """
        with self.running() as server:
            async with connected(server) as connection:
                found = await self._comparison.violations(connection)
                writers = Writers(self.history, self._draw)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(writers.run(*address(server)))
                    tasks.create_task(self._scan_always(server, found))
                    for number in range(_READERS):
                        tasks.create_task(self._query_always(server, number, found))
                    await writers.wait_answers(
                        self._draw.randrange(most_answers // 2, most_answers)
                    )
                    if graceful:
                        assert server.stop() == 0, server.log
                    else:
                        server.kill()
                assert "error" not in server.log, server.log
                self.answers += writers.answers
                self.refusals += writers.refusals
                self._count_splits(server)
        return found

    def _count_splits(self, server: Server) -> None:
        self.splits.update(_SPLIT.findall(server.log))

    async def _query_always(self, server: Server, number: int, found: list[str]) -> None:
        """Query random item collections until the server has ended."""
        draw = Random(number)
        connection = await Connection.open(*address(server))
        try:
            while True:
                collection = draw.randrange(_COLLECTIONS)
                answer = await connection.call("Query", _query(collection))
                self.queries += 1
                numbers = sorted(item["sk"]["S"] for item in answer.body.get("Items", ()))
                if numbers != sorted(map(str, range(_ITEMS))):
                    found.append(f"a query of still{collection} was answered by {answer}")
        except ConnectionLost:
            pass
        finally:
            await connection.close()

    async def _scan_always(self, server: Server, found: list[str]) -> None:
        """Scan in parallel, in small pages, until the server has ended.

        Each scan must return every unchanged item, and no item twice.
        """
        connections = [await Connection.open(*address(server)) for _ in range(_SEGMENTS)]
        unchanged = {
            _unchanged(collection, number).name
            for collection in range(_COLLECTIONS)
            for number in range(_ITEMS)
        }
        try:
            while True:
                segments = await asyncio.gather(
                    *(_segment(each, at) for at, each in enumerate(connections)),
                    return_exceptions=True,
                )
                names = Counter[str]()
                for segment in segments:
                    if isinstance(segment, BaseException):
                        raise segment
                    names.update(segment)
                self.scans += 1
                found += [f"a scan saw {name} twice" for name, count in names.items() if count > 1]
                found += [f"a scan did not see {name}" for name in unchanged - names.keys()]
        except ConnectionLost:
            pass
        finally:
            for connection in connections:
                await connection.close()


def _query(collection: int) -> dict[str, Any]:
    return {
        "TableName": SPLIT_TABLE,
        "ConsistentRead": True,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": f"still{collection}"}},
    }


async def _segment(connection: Connection, segment: int) -> list[str]:
    body: dict[str, Any] = {
        "TableName": SPLIT_TABLE,
        "Segment": segment,
        "TotalSegments": _SEGMENTS,
        "Limit": _PAGE_ITEMS,
    }
    names: list[str] = []
    while True:
        answer = await connection.call("Scan", body)
        assert answer.status == 200, answer
        names += [Place(SPLIT_TABLE, i["pk"]["S"], i["sk"]["S"]).name for i in answer.body["Items"]]
        if "LastEvaluatedKey" not in answer.body:
            return names
        body["ExclusiveStartKey"] = answer.body["LastEvaluatedKey"]


async def partition_count(database: IndexedDatabase) -> int:
    """The number of partitions of the table: the number of open shards of its stream."""
    count = 0
    with database.running() as server:
        async with connected(server) as connection:
            described = await connection.call("DescribeTable", {"TableName": SPLIT_TABLE})
            request = {"StreamArn": described.body["Table"]["LatestStreamArn"]}
            while True:
                answer = await connection.call("DescribeStream", request, _SERVICE)
                description = answer.body["StreamDescription"]
                count += sum(
                    "EndingSequenceNumber" not in shard["SequenceNumberRange"]
                    for shard in description["Shards"]
                )
                if "LastEvaluatedShardId" not in description:
                    break
                request["ExclusiveStartShardId"] = description["LastEvaluatedShardId"]
        assert server.stop() == 0, server.log
    return count

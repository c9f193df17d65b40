"""The requests of all operations, as bytes ready to send."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dynactor.load.wire.requests import Requests
from dynactor.load.work.plan import Plan
from dynactor.load.work.records import (
    GLOBAL_INDEX,
    LOCAL_INDEX,
    Records,
    Stamps,
    partition_key,
    sort_key,
)

# More than a page can hold.
_ALL: Final = 100_000


class Bodies:
    """Writes the requests of one plan. Items are identified by number."""

    def __init__(self, plan: Plan, records: Records, requests: Requests) -> None:
        self._records = records
        self._make = requests.make
        self._table = f'"TableName":"{plan.table}"'
        self._named = f'"{plan.table}"'
        self._consistent = ',"ConsistentRead":true' if plan.consistent else ""
        self._query_items = plan.query_items

    def get(self, number: int) -> bytes:
        """GetItem."""
        key = self._records.key(number)
        body = f'{{{self._table},"Key":{{{key}}}{self._consistent}}}'
        return self._make("GetItem", body.encode())

    def put(self, number: int, version: int, stamps: Stamps) -> bytes:
        """PutItem."""
        item = self._records.item(number, version, stamps)
        return self._make("PutItem", f'{{{self._table},"Item":{item}}}'.encode())

    def put_if_there(self, number: int, version: int, stamps: Stamps) -> bytes:
        """PutItem with the condition that it replaces an item."""
        item = self._records.item(number, version, stamps)
        body = f'{{{self._table},"Item":{item},"ConditionExpression":"attribute_exists(pk)"}}'
        return self._make("PutItem", body.encode())

    def put_if_version(self, number: int, version: int, stamps: Stamps, expected: int) -> bytes:
        """PutItem with the condition that the existing item has version ``expected``."""
        item = self._records.item(number, version, stamps)
        body = (
            f'{{{self._table},"Item":{item},"ConditionExpression":"version = :expected",'
            f'"ExpressionAttributeValues":{{":expected":{{"N":"{expected}"}}}}}}'
        )
        return self._make("PutItem", body.encode())

    def update(self, number: int, version: int) -> bytes:
        """UpdateItem of the version, the local index's key, and one field by turns."""
        records = self._records
        position = version % records.fields
        body = (
            f'{{{self._table},"Key":{{{records.key(number)}}},'
            '"UpdateExpression":'
            f'"SET version = :version, score = :score, field{position} = :field",'
            f'"ExpressionAttributeValues":{{":version":{{"N":"{version}"}},'
            f'":score":{{"N":"{records.score(number, version)}"}},'
            f'":field":{{"S":"{records.field(position, number, version)}"}}}}}}'
        )
        return self._make("UpdateItem", body.encode())

    def delete(self, number: int) -> bytes:
        """DeleteItem."""
        body = f'{{{self._table},"Key":{{{self._records.key(number)}}}}}'
        return self._make("DeleteItem", body.encode())

    def query(self, number: int) -> bytes:
        """Query of the first items in an item's collection."""
        pk = partition_key(number // self._records.collection_items)
        return self._query(
            '"KeyConditionExpression":"pk = :pk",'
            f'"ExpressionAttributeValues":{{":pk":{{"S":"{pk}"}}}}{self._consistent}',
            self._query_items,
        )

    def range(self, number: int, limit: int) -> bytes:
        """Query of some items of a collection, from this one on: YCSB's scan."""
        collection, position = divmod(number, self._records.collection_items)
        return self._query(
            '"KeyConditionExpression":"pk = :pk AND sk >= :sk","ExpressionAttributeValues":'
            f'{{":pk":{{"S":"{partition_key(collection)}"}},":sk":{{"S":"{sort_key(position)}"}}}}'
            f"{self._consistent}",
            limit,
        )

    def local_query(self, number: int) -> bytes:
        """Query of the local index: a collection's items, by score."""
        pk = partition_key(number // self._records.collection_items)
        return self._query(
            f'"IndexName":"{LOCAL_INDEX}","KeyConditionExpression":"pk = :pk",'
            f'"ExpressionAttributeValues":{{":pk":{{"S":"{pk}"}}}}{self._consistent}',
            self._query_items,
        )

    def global_query(self, number: int) -> bytes:
        """Query of the global index: some items of an item's category."""
        return self._query(self._of_category(number), self._query_items)

    def whole_category(self, number: int, start_key: bytes = b"") -> bytes:
        """Query of the global index: all items of an item's category, from a key on."""
        start = f',"ExclusiveStartKey":{start_key.decode()}' if start_key else ""
        return self._query(f"{self._of_category(number)}{start}", _ALL)

    def _of_category(self, number: int) -> str:
        return (
            f'"IndexName":"{GLOBAL_INDEX}","KeyConditionExpression":"category = :category",'
            '"ExpressionAttributeValues":'
            f'{{":category":{{"S":"{self._records.category(number)}"}}}}'
        )

    def _query(self, members: str, limit: int) -> bytes:
        return self._make("Query", f'{{{self._table},"Limit":{limit},{members}}}'.encode())

    def batch_get(self, numbers: Sequence[int]) -> bytes:
        """BatchGetItem."""
        keys = ",".join(f"{{{self._records.key(number)}}}" for number in numbers)
        body = f'{{"RequestItems":{{{self._named}:{{"Keys":[{keys}]{self._consistent}}}}}}}'
        return self._make("BatchGetItem", body.encode())

    def batch_write(self, items: Iterable[tuple[int, int, Stamps]]) -> bytes:
        """BatchWriteItem of whole items."""
        puts = ",".join(
            f'{{"PutRequest":{{"Item":{self._records.item(*item)}}}}}' for item in items
        )
        return self.batch_of(puts)

    def batch_of(self, requests: str) -> bytes:
        """BatchWriteItem of requests in JSON, such as unprocessed ones."""
        body = f'{{"RequestItems":{{{self._named}:[{requests}]}}}}'
        return self._make("BatchWriteItem", body.encode())

    def transact_write(self, items: Iterable[tuple[int, int, Stamps]]) -> bytes:
        """TransactWriteItems of whole items."""
        puts = ",".join(
            f'{{"Put":{{{self._table},"Item":{self._records.item(*item)}}}}}' for item in items
        )
        return self._make("TransactWriteItems", f'{{"TransactItems":[{puts}]}}'.encode())

    def transact_get(self, numbers: Iterable[int]) -> bytes:
        """TransactGetItems."""
        gets = ",".join(
            f'{{"Get":{{{self._table},"Key":{{{self._records.key(number)}}}}}}}'
            for number in numbers
        )
        return self._make("TransactGetItems", f'{{"TransactItems":[{gets}]}}'.encode())

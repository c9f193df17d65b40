"""The table and its items: an item is a function of its number, version and size.

Each field begins with the number of the item and the version that wrote it, so each value shows
its origin. The remaining text consists of English words, which compress about as well as real
data.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple

from dynactor.load.work.keys import scattered
from dynactor.load.work.plan import Plan
from dynactor.load.work.sizes import MAX_BYTES, sizes

LOCAL_INDEX: Final = "by_score"
GLOBAL_INDEX: Final = "by_category"
_SCORES: Final = 1_000
_NUMBER_BYTES: Final = 4
_WORDS: Final = (
    *("partition", "owner", "mailbox", "order", "customer", "every", "table", "has", "one", "and"),
    *("its", "writes", "happen", "after", "another", "index", "stream", "shard", "record", "is"),
    *("change", "item", "value", "are", "of", "the", "a", "in", "to", "with", "by", "from", "gift"),
    *("express", "zone", "street", "harbour", "winter", "paper", "bridge", "lantern", "copper"),
)

Stamps = tuple[int, ...]


class Seen(NamedTuple):
    """The content of an item that was read: its number, its version, and each field's version."""

    number: int
    version: int
    stamps: Stamps


class Records:
    """Creates a plan's items as JSON, and recognizes them."""

    def __init__(self, plan: Plan) -> None:
        self.fields = plan.fields
        self.collection_items = plan.collection_items
        self._categories = max(1, plan.keys // plan.collection_items)
        self._sizes = sizes(plan.item_size)
        self._seed = scattered(plan.seed)
        self._text = _text(plan.seed)
        names = ("pk", "sk", "version", "score", "category")
        self._overhead = (
            sum(map(len, names))
            + len(partition_key(0) + sort_key(0) + self.category(0))
            + 2 * _NUMBER_BYTES
            + sum(len(f"field{position}") for position in range(plan.fields))
        )

    def key(self, number: int) -> str:
        """The members of a key, in JSON without the braces."""
        collection, position = divmod(number, self.collection_items)
        pk, sk = partition_key(collection), sort_key(position)
        return f'"pk":{{"S":"{pk}"}},"sk":{{"S":"{sk}"}}'

    def category(self, number: int) -> str:
        """The partition key in the global index; each value has items of many collections."""
        return f"category#{number % self._categories:09}"

    def score(self, number: int, version: int) -> int:
        """The sort key in the local index, different in each version."""
        return (number * 31 + version * 17) % _SCORES

    def field(self, position: int, number: int, version: int) -> str:
        """A field's text as written by that version of the item."""
        mixed = scattered(number ^ scattered(version ^ self._seed))
        size = self._sizes((mixed >> 11) / (1 << 53))
        share = max(size - self._overhead, 0) // self.fields
        stamp = f"{number}:{version}:"
        start = (mixed + position * 7_919) % (len(self._text) - MAX_BYTES)
        return stamp + self._text[start : start + max(share - len(stamp), 0)]

    def item(self, number: int, version: int, stamps: Sequence[int]) -> str:
        """A whole item in JSON; ``stamps`` are the versions that wrote its fields."""
        fields = "".join(
            f',"field{position}":{{"S":"{self.field(position, number, stamp)}"}}'
            for position, stamp in enumerate(stamps)
        )
        return (
            f'{{{self.key(number)},"version":{{"N":"{version}"}},'
            f'"score":{{"N":"{self.score(number, version)}"}},'
            f'"category":{{"S":"{self.category(number)}"}}{fields}}}'
        )

    def recognize(self, item: dict[str, Any]) -> Seen | None:
        """The content of an item that was read; None unless it equals a generated item exactly."""
        try:
            collection, position = number_in(item["pk"]["S"]), number_in(item["sk"]["S"])
            number = collection * self.collection_items + position
            version = int(item["version"]["N"])
            stamps = tuple(
                int(item[f"field{position}"]["S"].split(":", 2)[1])
                for position in range(self.fields)
            )
        except (AttributeError, LookupError, TypeError, ValueError):
            return None
        return Seen(number, version, stamps) if self._is(item, number, version, stamps) else None

    def _is(self, item: dict[str, Any], number: int, version: int, stamps: Stamps) -> bool:
        collection, position = divmod(number, self.collection_items)
        return item == {
            "pk": {"S": partition_key(collection)},
            "sk": {"S": sort_key(position)},
            "version": {"N": str(version)},
            "score": {"N": str(self.score(number, version))},
            "category": {"S": self.category(number)},
            **{
                f"field{position}": {"S": self.field(position, number, stamp)}
                for position, stamp in enumerate(stamps)
            },
        }


def partition_key(collection: int) -> str:
    """The partition key of a collection."""
    return f"customer#{collection:09}"


def sort_key(position: int) -> str:
    """The sort key at a position in its collection."""
    return f"order#{position:06}"


def number_in(key: str) -> int:
    """The number in one of these keys, or in a category.

    Raises:
        ValueError: there is none.
    """
    return int(key.rpartition("#")[2])


def create_table(plan: Plan) -> dict[str, Any]:
    """CreateTable's body for a plan: on demand, with the plan's indexes."""
    attributes = {"pk": "S", "sk": "S"}
    body: dict[str, Any] = {
        "TableName": plan.table,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _key_schema("pk", "sk"),
    }
    if plan.local_index:
        attributes["score"] = "N"
        body["LocalSecondaryIndexes"] = [_index(LOCAL_INDEX, "pk", "score")]
    if plan.global_index:
        attributes["category"] = "S"
        body["GlobalSecondaryIndexes"] = [_index(GLOBAL_INDEX, "category", "pk")]
    body["AttributeDefinitions"] = [
        {"AttributeName": name, "AttributeType": kind} for name, kind in attributes.items()
    ]
    return body


def _index(name: str, partition: str, sort: str) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": _key_schema(partition, sort),
        "Projection": {"ProjectionType": "ALL"},
    }


def _key_schema(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


def _text(seed: int) -> str:
    """A text longer than the largest item, so that fields can begin at many positions of it."""
    random = Random(seed)
    return " ".join(random.choices(_WORDS, k=2 * MAX_BYTES // min(map(len, _WORDS))))

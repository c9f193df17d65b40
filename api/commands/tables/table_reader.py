"""Reads items of a table: pages of a scan, and items by their keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from dynactor.api.clients.client import Endpoint
from dynactor.model.back_off import BackOff
from dynactor.model.limits import BATCH_GET_KEYS
from dynactor.model.values import attribute_value
from dynactor.model.values.item import Item

_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 5.0

_encode = msgspec.json.Encoder(order="sorted").encode


class ItemPage(NamedTuple):
    """A page of a scan; ``after`` is the key to continue after, None at the end."""

    items: list[Item]
    after: dict[str, Any] | None


def canonical(item: Item) -> bytes:
    """The one spelling of an item: equal items have equal bytes, at any endpoint."""
    for value in item.values():
        attribute_value.check(value)
    return _encode(item)


class TableReader:
    """Reads one table consistently."""

    def __init__(
        self,
        endpoint: Endpoint,
        table_name: str,
        key_names: Sequence[str],
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._endpoint = endpoint
        self._table_name = table_name
        self._key_names = tuple(key_names)
        self._pause = pause

    def extract_key(self, item: Item) -> Item:
        """The key of an item."""
        return {name: item[name] for name in self._key_names}

    async def pages(
        self,
        segment: int = 0,
        segments: int = 1,
        *,
        after: dict[str, Any] | None = None,
        keys_only: bool = False,
    ) -> AsyncIterator[ItemPage]:
        """Scan a segment of the table, page by page."""
        request: dict[str, Any] = {
            "TableName": self._table_name,
            "ConsistentRead": True,
            "Segment": segment,
            "TotalSegments": segments,
        }
        if keys_only:
            request |= self._projection()
        while True:
            if after is not None:
                request["ExclusiveStartKey"] = after
            answer = await self._endpoint.call("Scan", request)
            after = answer.get("LastEvaluatedKey")
            yield ItemPage(answer["Items"], after)
            if after is None:
                return

    async def is_empty(self) -> bool:
        """Whether the table has no item."""
        request = {"TableName": self._table_name, "ConsistentRead": True, "Limit": 1}
        answer = await self._endpoint.call("Scan", request)
        return not answer["Items"]

    async def items(self, keys: Sequence[Item], *, keys_only: bool = False) -> dict[bytes, Item]:
        """The existing items of distinct keys, by their canonical key."""
        found: dict[bytes, Item] = {}
        for start in range(0, len(keys), BATCH_GET_KEYS):
            part: dict[str, Any] = {
                "Keys": list(keys[start : start + BATCH_GET_KEYS]),
                "ConsistentRead": True,
            }
            if keys_only:
                part |= self._projection()
            back_off = BackOff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
            while part:
                request = {"RequestItems": {self._table_name: part}}
                answer = await self._endpoint.call("BatchGetItem", request)
                items = answer["Responses"].get(self._table_name, [])
                found |= {canonical(self.extract_key(item)): item for item in items}
                part = answer.get("UnprocessedKeys", {}).get(self._table_name, {})
                if part and not items:
                    await self._pause(back_off.pause_seconds())
        return found

    def _projection(self) -> dict[str, Any]:
        names = {f"#{place}": name for place, name in enumerate(self._key_names)}
        return {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}

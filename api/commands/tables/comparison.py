"""Compares two tables by checksums of 1,000 items, and finds the items that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from dynactor.api.commands.tables.concurrent_calls import concurrent_calls
from dynactor.api.commands.tables.table_reader import TableReader, canonical
from dynactor.model.values.item import Item

CHUNK_ITEMS: Final = 1_000
_DIGEST_BYTES: Final = 32

# The copy lacks the item, has other attributes, or has an item that the source lacks.
Kind: TypeAlias = Literal["missing", "different", "surplus"]


class ItemDifference(NamedTuple):
    """A key whose items differ."""

    kind: Kind
    key: Item


class Comparison(Struct):
    """The result: counts, a checksum of each table's items, and the differences."""

    source_items: int = 0
    copy_items: int = 0
    source_sum: int = 0
    copy_sum: int = 0
    differences: list[ItemDifference] = field(default_factory=list)


async def compare(
    source: TableReader, copy: TableReader, segments: int, update: Callable[[Comparison], None]
) -> Comparison:
    """Compare all items of both tables; raises ``RequestFailed`` or ``CannotCall``."""
    result = Comparison()

    async def scan(segment: int) -> None:
        chunk: list[Item] = []
        async for page in source.pages(segment, segments):
            for item in page.items:
                chunk.append(item)
                if len(chunk) == CHUNK_ITEMS:
                    await _compare_chunk(source, copy, chunk, result)
                    update(result)
                    chunk = []
        if chunk:
            await _compare_chunk(source, copy, chunk, result)

    async def scan_copy(segment: int) -> None:
        async for page in copy.pages(segment, segments, keys_only=True):
            result.copy_items += len(page.items)
            update(result)
            existing = await source.items(page.items, keys_only=True)
            result.differences += [
                ItemDifference("surplus", key)
                for key in page.items
                if canonical(key) not in existing
            ]

    async with concurrent_calls() as group:
        for segment in range(segments):
            group.start_soon(scan, segment)
            group.start_soon(scan_copy, segment)
    return result


async def compare_again(
    source: TableReader, copy: TableReader, keys: Sequence[Item]
) -> list[ItemDifference]:
    """The differences of these keys now."""
    left, right = await source.items(keys), await copy.items(keys)
    return _differences(source, left, right)


async def _compare_chunk(
    source: TableReader, copy: TableReader, items: list[Item], result: Comparison
) -> None:
    left = {canonical(source.extract_key(item)): item for item in items}
    right = await copy.items([source.extract_key(item) for item in items])
    left_sum, right_sum = _checksum(left.values()), _checksum(right.values())
    result.source_items += len(left)
    result.source_sum = _added(result.source_sum, left_sum)
    result.copy_sum = _added(result.copy_sum, right_sum)
    if left_sum != right_sum:
        result.differences += _differences(source, left, right)


def _differences(
    reader: TableReader, left: dict[bytes, Item], right: dict[bytes, Item]
) -> list[ItemDifference]:
    found = []
    for key, item in left.items():
        if key not in right:
            found.append(ItemDifference("missing", reader.extract_key(item)))
        elif canonical(item) != canonical(right[key]):
            found.append(ItemDifference("different", reader.extract_key(item)))
    return found + [
        ItemDifference("surplus", reader.extract_key(item))
        for key, item in right.items()
        if key not in left
    ]


def _checksum(items: Iterable[Item]) -> int:
    """A checksum that does not depend on the order of the items."""
    total = 0
    for item in items:
        total = _added(total, int.from_bytes(sha256(canonical(item)).digest(), "big"))
    return total


def _added(left: int, right: int) -> int:
    return (left + right) % (1 << 8 * _DIGEST_BYTES)

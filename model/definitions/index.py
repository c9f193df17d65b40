"""Secondary indexes: their definitions and the entries of items."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import ITEM_SIZE_BYTES, PARTITION_KEY_BYTES, SORT_KEY_BYTES
from dynactor.model.values import attribute_value
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import TOO_LARGE_TO_PUT, Item, check_size, size_bytes

ProjectionType: TypeAlias = Literal["ALL", "KEYS_ONLY", "INCLUDE"]


KeyViolation: TypeAlias = Literal["wrong type", "empty", "too long"]

# A character has at most 4 bytes, so a text this short is within the limit of each key part. The
# text of a number or binary is never shorter than its encoded bytes.
SHORT_KEY_CHARACTERS: Final = SORT_KEY_BYTES // 4


class Projection(Struct, frozen=True):
    """Attributes that an index holds besides its own key and the table's key (S16-S18)."""

    type: ProjectionType
    non_key_attributes: tuple[str, ...] = ()


class IndexDefinition(Struct, frozen=True, dict=True):
    """A secondary index. ``index_id`` is never reused in the table; 0 is the table itself."""

    index_id: int
    name: str
    key_schema: KeySchema
    projection: Projection

    # Every write uses these properties of every index, so they are computed once.

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        """The attributes of the index's key; an item without one of them has no entry."""
        return tuple(attribute.name for attribute in self.key_schema.attributes)

    @cached_property
    def holds_all(self) -> bool:
        """Whether an entry is the whole item."""
        return self.projection.type == "ALL"

    @cached_property
    def own_names(self) -> frozenset[str]:
        """Names the index holds besides the table's key, if it does not hold all (S16, S17)."""
        return frozenset((*self.key_names, *self.projection.non_key_attributes))


def entry(index: IndexDefinition, table_key: KeySchema, item: Item) -> Item | None:
    """An item's entry in the index; None if a key attribute is missing (sparse index, S48)."""
    for name in index.key_names:
        if name not in item:
            return None
    return item if index.holds_all else _projected(index, table_key, item)


def _projected(index: IndexDefinition, table_key: KeySchema, item: Item) -> Item:
    own, keys = index.own_names, table_key.names
    return {name: value for name, value in item.items() if name in own or name in keys}


def global_entry(index: IndexDefinition, table_key: KeySchema, item: Item) -> Item | None:
    """An item's entry in a global index.

    None if a key attribute is missing (S115) or is not a valid key value: its type is wrong, it is
    empty or too long (S190). An index created later leaves such items out. Once the index exists,
    they can't be written.
    """
    schema = index.key_schema
    for attribute in schema.attributes:
        value = item.get(attribute.name)
        if value is None:
            return None
        # Nearly every value has the right type and is short.
        content = value.get(attribute.type)
        if content and len(content) <= SHORT_KEY_CHARACTERS:
            continue
        if key_violation(schema, attribute, value):
            return None
    if len(schema.partition) > 1 and part_size_bytes(schema.partition, item) > PARTITION_KEY_BYTES:
        return None
    if len(schema.sort) > 1 and part_size_bytes(schema.sort, item) > SORT_KEY_BYTES:
        return None
    return item if index.holds_all else _projected(index, table_key, item)


def entry_position(index: IndexDefinition, entry: Item, table_key: bytes) -> bytes:
    """The position of a global index's entry: the index's key, and the table's without hash."""
    return keys.encode(index.key_schema, entry) + table_key


def key_violation(
    schema: KeySchema, attribute: KeyAttribute, value: AttributeValue
) -> KeyViolation | None:
    """Why a value is invalid for an attribute of an index's key; None if it is valid."""
    content = value.get(attribute.type)
    if content is None:
        return "wrong type"
    if content == "":
        return "empty"
    if len(content) <= SHORT_KEY_CHARACTERS:
        return None
    limit_bytes = PARTITION_KEY_BYTES if attribute in schema.partition else SORT_KEY_BYTES
    return "too long" if attribute_value.size_bytes(value) > limit_bytes else None


def part_size_bytes(part: Sequence[KeyAttribute], item: Item) -> int:
    """The size of one part of an item's index key; the attributes of a part share its limit."""
    return sum(
        attribute_value.size_bytes(item[attribute.name])
        for attribute in part
        if attribute.name in item
    )


def projected_names(index: IndexDefinition, table_key: KeySchema) -> frozenset[str]:
    """The names that an index with KEYS_ONLY or INCLUDE holds (S12, S16, S17)."""
    return table_key.names | index.own_names


def check_size_with_entries(
    local_indexes: Sequence[IndexDefinition],
    table_key: KeySchema,
    item: Item,
    item_size_bytes: int,
    message: str = TOO_LARGE_TO_PUT,
) -> None:
    """Refuse an item over 400 KB with its entries in local indexes; raises ``ValidationException``.

    Source: "Quotas in Amazon DynamoDB", item size for tables with local secondary indexes.
    """
    # An entry is never larger than its item, so nearly every item returns here.
    if item_size_bytes * (1 + len(local_indexes)) <= ITEM_SIZE_BYTES:
        return
    entries = (entry(index, table_key, item) for index in local_indexes)
    check_size(item_size_bytes + sum(map(size_bytes, filter(None, entries))), message)

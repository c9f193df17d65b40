"""Writes, and the decision of a write on the existing item.

``decide`` is pure: the same old item gives the same result, so a partition may decide again after a
conflict.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from dynactor.model.definitions.index import check_size_with_entries
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ConditionalCheckFailedException, ValidationException
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.update import BoundUpdate as UpdateExpression
from dynactor.model.tables.key_rules import check_updated_index_keys
from dynactor.model.values import attribute_value
from dynactor.model.values.item import TOO_LARGE_AFTER_UPDATE, Item, check_size, size_bytes
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.change import (
    Change,
    global_changes,
    local_changes,
    refused_receipt,
    write_receipt,
)

ReturnValues: TypeAlias = Literal["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"]


class Put(Struct, frozen=True, tag=True):
    """Put a whole item, replacing the one with its key."""

    item: Item
    size_bytes: int
    condition: Condition | None = None
    return_values: ReturnValues = "NONE"
    return_item_on_failure: bool = False

    @property
    def identity(self) -> Item:
        """The item's key, possibly with other attributes."""
        return self.item


class Update(Struct, frozen=True, tag=True):
    """Change some attributes of an item; a missing item is created."""

    key: Item
    update: UpdateExpression | None = None
    condition: Condition | None = None
    return_values: ReturnValues = "NONE"
    return_item_on_failure: bool = False

    @property
    def identity(self) -> Item:
        """The item's key."""
        return self.key


class Delete(Struct, frozen=True, tag=True):
    """Delete an item; deleting a missing item is not an error."""

    key: Item
    condition: Condition | None = None
    return_values: ReturnValues = "NONE"
    return_item_on_failure: bool = False

    @property
    def identity(self) -> Item:
        """The item's key."""
        return self.key


Write: TypeAlias = Put | Update | Delete

_NO_ITEM: Item = {}


def decide(table: TableDefinition, old: StoredItem | None, write: Write, version: int) -> Change:
    """Decide ``write`` on ``old``; the new item gets ``version``.

    Raises ``ConditionalCheckFailedException``, or ``ValidationException`` if the update or its
    result is invalid.
    """
    if write.condition is not None:
        check_condition(old, write)
    if isinstance(write, Update):
        return _decide_update(table, old, write, version)
    new: StoredItem | None = None
    if isinstance(write, Put):
        new = StoredItem.of(write.item, version, write.size_bytes)
    attributes = old.item if old and write.return_values == "ALL_OLD" else None
    return _change(table, old, new, attributes)


class Conditional(Protocol):
    """A write or check with a condition."""

    @property
    def condition(self) -> Condition | None:
        """The condition that the item must meet."""

    @property
    def return_item_on_failure(self) -> bool:
        """Whether the error includes the item."""


def check_condition(old: StoredItem | None, write: Conditional) -> None:
    """Check the condition on an item; raises ``ConditionalCheckFailedException`` if it is false."""
    assert write.condition is not None
    if write.condition.evaluate(old.item if old else _NO_ITEM):
        return
    raise ConditionalCheckFailedException(
        item=old.item if old and write.return_item_on_failure else None,
        receipt=refused_receipt(old, write.size_bytes if isinstance(write, Put) else None),
    )


def _decide_update(
    table: TableDefinition, old: StoredItem | None, write: Update, version: int
) -> Change:
    if write.update is None:
        # An update without an expression still creates a missing item.
        item = old.item if old else write.key
        written: frozenset[str] = frozenset()
    else:
        edited = write.update.edited(old.item if old else None, write.key)
        if edited is None:
            return _change(table, None, None, None)
        item = edited
        written = write.update.attributes
    check_updated_index_keys(table, item, written if old else None)
    new_size_bytes = _updated_size_bytes(old, item, written)
    check_size(new_size_bytes, TOO_LARGE_AFTER_UPDATE)
    check_size_with_entries(
        table.local_indexes, table.key_schema, item, new_size_bytes, TOO_LARGE_AFTER_UPDATE
    )
    _check_depth(item, written)
    new = StoredItem.of(item, version, new_size_bytes)
    return _change(table, old, new, _attributes(write, old, item) or None)


def _attributes(write: Update, old: StoredItem | None, item: Item) -> Item | None:
    match write.return_values:
        case "NONE":
            return None
        case "ALL_OLD":
            return old.item if old else None
        case "ALL_NEW":
            return item
        case "UPDATED_OLD":
            return write.update.updated(old.item) if write.update and old else None
        case "UPDATED_NEW":
            return write.update.updated(item) if write.update else None


def _updated_size_bytes(old: StoredItem | None, item: Item, written: frozenset[str]) -> int:
    """The size of an updated item; only the written parts of an old item are measured."""
    if old is None:
        return size_bytes(item)
    size, before = old.size_bytes, old.item
    for name in written:
        was, now = before.get(name), item.get(name)
        if was is now:
            continue
        name_bytes = len(name.encode())
        if was is not None:
            size -= name_bytes + attribute_value.size_bytes(was)
        if now is not None:
            size += name_bytes + attribute_value.size_bytes(now)
    return size


def _check_depth(item: Item, written: frozenset[str]) -> None:
    """Refuse an update that nests a value deeper than any request could."""
    for name in written:
        if name in item and attribute_value.is_too_deep(item[name]):
            raise ValidationException(attribute_value.TOO_DEEP)


def _change(
    table: TableDefinition,
    old: StoredItem | None,
    new: StoredItem | None,
    attributes: Item | None,
) -> Change:
    if not (table.local_indexes or table.global_indexes):
        return Change(old, new, (), attributes, write_receipt(old, new, ()), ())
    local_index_changes = local_changes(table, old, new)
    global_index_changes = global_changes(table, old, new)
    receipt = write_receipt(old, new, local_index_changes + global_index_changes)
    return Change(old, new, local_index_changes, attributes, receipt, global_index_changes)

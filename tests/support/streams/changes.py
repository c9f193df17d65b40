"""Change records for tests of the stream."""

from __future__ import annotations

from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord, Origin, TransactionPlace
from dynactor.streams.sequence_number import SequenceNumber


def change(
    key: Item,
    old: Item | None,
    new: Item | None,
    number: SequenceNumber = SequenceNumber(1, 1),  # noqa: B008 - frozen
    *,
    commit_time_us: int = 1_700_000_000_987_654,
    origin: Origin = Origin.USER,
    transaction: TransactionPlace | None = None,
    author: str = "",
) -> ChangeRecord:
    """A change of the item with this key, from the old image to the new one."""
    return ChangeRecord(
        number,
        commit_time_us,
        origin,
        items.encode(key),
        None if old is None else StoredItem.of({**key, **old}, number.packed() - 1),
        None if new is None else StoredItem.of({**key, **new}, number.packed()),
        transaction,
        author=author,
    )

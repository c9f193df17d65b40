"""The stored burst balances, the unused capacity units of partitions: rows and encoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct, msgpack

from dynactor.model.throttling.burst_balance import Balance
from dynactor.storage import key_layout
from dynactor.storage.row_pages import rows_in
from dynactor.storage.store import Row, View


class Resource(NamedTuple):
    """A table (index id 0), or one of its global indexes."""

    table_id: int
    index_id: int


class BalancesHead(Struct, frozen=True):
    """The head row of all balances.

    ``stopped_at_epoch_seconds`` is the time of the last orderly stop. It is None while the server
    runs and after a crash: then the units consumed since the last stored balances are unknown.
    """

    stopped_at_epoch_seconds: float | None = None


class LoadedBalances(NamedTuple):
    """The head, its bytes, and all balances by resource and partition number."""

    head: BalancesHead
    head_bytes: bytes | None
    balances: Mapping[Resource, Mapping[int, Balance]]


# All balances are full.
NO_BALANCES: Final = LoadedBalances(BalancesHead(), None, {})

_encode = msgpack.Encoder().encode
_decode_head = msgpack.Decoder(BalancesHead).decode
_decode = msgpack.Decoder(Balance).decode


def encode_head(head: BalancesHead) -> bytes:
    """The bytes of the head row."""
    return _encode(head)


def key(resource: Resource, partition_number: int) -> bytes:
    """The key of the row of a partition's balance."""
    return key_layout.balance(*resource, partition_number)


def row(resource: Resource, partition_number: int, balance: Balance) -> Row:
    """The row of a partition's balance."""
    return Row(key(resource, partition_number), _encode(balance))


def decode(value: bytes) -> Balance:
    """The balance in a row's value."""
    return _decode(value)


async def load(view: View) -> LoadedBalances:
    """Read all balances. Data of an earlier version has none. Raises ``StoreError``."""
    (head_bytes,) = await view.load([key_layout.BALANCES_HEAD])
    head = BalancesHead() if head_bytes is None else _decode_head(head_bytes)
    balances: dict[Resource, dict[int, Balance]] = {}
    async for row_key, value in rows_in(view, *key_layout.BALANCES):
        *resource, number = key_layout.balance_ids(row_key)
        balances.setdefault(Resource(*resource), {})[number] = decode(value)
    return LoadedBalances(head, head_bytes, balances)

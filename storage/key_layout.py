"""The layout of keys in the one ordered space.

| key | value |
| --- | --- |
| ``00`` | the catalog's head: the next table id and partition number |
| ``01`` table name | a table's record |
| ``02`` partition number | the partition's head |
| ``03`` table id, index id, hash, partition key, sort key | an item or an index entry |
| ``03`` table id, ``ffffffff``, hash, partition key | the size of an item collection |
| ``04`` partition number, counter | a change record |
| ``04`` partition number, ``ff``, period, ``00`` or ``01``, position, counter | a listed change |
| ``05`` subscriber, partition number | the subscriber's checkpoint in that partition's log |
| ``07`` table id, partition number | the counter up to which that log was trimmed, and its time |
| ``06`` table id, stream label | a DynamoDB stream and its shards |
| ``08`` table id, slice of the hash, time in µs, position | empty: an item's expiry time |
| ``08`` table id, slice of the hash, ``ff``… | empty: the end of the slice |
| ``09`` | the virtual clock |
| ``0a`` ten minutes of time, account, ``/``, token | the transaction with that client token |
| ``0b`` | the key up to which tokens were deleted |
| ``0c`` start of a range | its end; the disk space of the deleted rows is to be reclaimed |
| ``0d`` table name, ``/``, label | the record of a table's backup |
| ``0e`` | the head of all balances: the time of the last orderly stop |
| ``0f`` table id, index id, partition number | the unused capacity units of a partition |
| ``10``, ``copy`` | the first key that an unfinished copy from another store lacks |
| ``10``, ``sessions`` | the key that signs the tokens of temporary credentials |
| ``10`` | the separation of namespaces, and the home region |
| ``11`` | the catalog's version, which every change of tables and streams raises |
| ``12`` node's name | the number of the node's commits of the catalog |
| ``13`` ``export/`` or ``import/``, id | the record of an export or import |
| ``13`` ``bulk/``, id | the record of a bulk operation |
| ``14`` | the version of all claims, which every change of a claim raises |
| ``14`` table name | the claim of the table's home, if it is not the leader |
| ``15`` table name | the name of the group of tables that have one home |
| ``80`` + first byte, region, ``/``, access key id, ``00``, rest of a key | a namespace's row |

Numbers are big-endian and have 8 bytes; an index id has 4. Index id 0 is the table itself. The row
of a local index's entry ends with the table's own sort key, so equal index keys have distinct rows.
The items of a table's backup are rows like a table's own, under a table id that no table has.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812 - a class
from typing import Final, Literal, TypeAlias

from dynactor.model.definitions.table import TABLE_INDEX_ID, TableDefinition
from dynactor.model.keys import key as keys
from dynactor.model.tables.table_backup import TableBackupId
from dynactor.model.values.item import Item
from dynactor.storage.subscriber_names import EXPIRER, REPLAYS, index_subscriber

CATALOG_HEAD: Final = b"\x00"
RowKind: TypeAlias = Literal["table", "partition", "item or entry", "other"]

_TABLE_RECORD: Final = b"\x01"
_PARTITION_HEAD: Final = b"\x02"
_ROW: Final = b"\x03"
_CHANGE: Final = b"\x04"
_CHECKPOINT: Final = b"\x05"
_STREAM: Final = b"\x06"
_TRIM: Final = b"\x07"
_EXPIRY: Final = b"\x08"
VIRTUAL_CLOCK: Final = b"\x09"
_CLIENT_TOKEN: Final = b"\x0a"
CLIENT_TOKENS_TRIMMED: Final = b"\x0b"
_RECLAIM: Final = b"\x0c"
_TABLE_BACKUP: Final = b"\x0d"
BALANCES_HEAD: Final = b"\x0e"
_BALANCE: Final = b"\x0f"
SEPARATION: Final = b"\x10"
COPY_CURSOR: Final = b"\x10copy"
SESSION_KEY: Final = b"\x10sessions"
CATALOG_VERSION: Final = b"\x11"
CATALOG_WRITER: Final = b"\x12"
EXPORT: Final = b"\x13export/"
IMPORT: Final = b"\x13import/"
BULK_OPERATION: Final = b"\x13bulk/"
_CLAIM: Final = b"\x14"
CLAIMS_VERSION: Final = _CLAIM
_TABLE_GROUP: Final = b"\x15"
_NAMESPACE: Final = 0x80
_NAMESPACE_END: Final = b"\x00"
_COLLECTIONS: Final = 0xFFFF_FFFF

_NUMBER: Final = Struct(">Q")
_PAIR: Final = Struct(">QQ")
_LISTED_PREFIX: Final = Struct(">cQBIB")
COUNTER_BYTES: Final = _NUMBER.size
_ROW_PREFIX: Final = Struct(">cQI")
_BALANCE_KEY: Final = Struct(">cQIQ")
_EXPIRY_PREFIX: Final = Struct(">cQB")
# Added to times, so that times before 1970 sort before later ones.
_EXPIRY_BIAS: Final = 1 << 63
_EXPIRY_END: Final = b"\xff" * _NUMBER.size
# Slices of the hash space. With 16, one partition's times are in few slices, and up to 16
# partitions share none.
EXPIRY_SLICES: Final = 16
_SLICE_SHIFT: Final = 4
ROW_PREFIX_BYTES: Final = _ROW_PREFIX.size

# Follows the partition number in the keys of listed changes. Counters have 40 bits, so the first
# byte of a counter is 0.
_LISTED: Final = 0xFF
# A counter after those of all changes.
AFTER_CHANGES: Final = _LISTED << 56
_FIRST, _LATER = range(2)
# Period 0 is not used, so all listed changes come after the key of that counter.
_FIRST_PERIOD: Final = 1

# The first bytes of the keys of heads and of change records, with and without a namespace.
HEAD_KINDS: Final = frozenset(
    key[0] + namespace
    for namespace in (0, _NAMESPACE)
    for key in (
        CATALOG_HEAD,
        _PARTITION_HEAD,
        _CHECKPOINT,
        VIRTUAL_CLOCK,
        CLIENT_TOKENS_TRIMMED,
        BALANCES_HEAD,
        SEPARATION,
        CATALOG_VERSION,
        CATALOG_WRITER,
        _CLAIM,
        _TABLE_GROUP,
    )
)
CHANGE_KINDS: Final = frozenset((_CHANGE[0], _CHANGE[0] + _NAMESPACE))

TABLE_RECORDS: Final = (_TABLE_RECORD, _PARTITION_HEAD)
RECLAIMS: Final = (_RECLAIM, bytes([_RECLAIM[0] + 1]))
TABLE_BACKUPS: Final = (_TABLE_BACKUP, bytes([_TABLE_BACKUP[0] + 1]))
BALANCES: Final = (_BALANCE, bytes([_BALANCE[0] + 1]))
# A name has at least one character.
CLAIMS: Final = (_CLAIM + b"\x00", bytes([_CLAIM[0] + 1]))
TABLE_GROUPS: Final = (_TABLE_GROUP, bytes([_TABLE_GROUP[0] + 1]))
# The heads of the catalogs of all namespaces.
NAMESPACES: Final = (bytes([_NAMESPACE]), bytes([_NAMESPACE + 1]))


def catalog_writer(node: str) -> bytes:
    """The key of the row that counts a node's commits of the catalog."""
    return CATALOG_WRITER + node.encode()


def table_record(name: str) -> bytes:
    """The key of a table's record in the catalog."""
    return _TABLE_RECORD + name.encode()


def claim(name: str) -> bytes:
    """The key of the claim of a table's home."""
    return _CLAIM + name.encode()


def table_group(name: str) -> bytes:
    """The key of the row that names a table's group."""
    return _TABLE_GROUP + name.encode()


def table_name(row_key: bytes) -> str:
    """The name in the key of a table's record, claim or group."""
    return row_key[len(_TABLE_RECORD) :].decode(errors="replace")


def partition_head(partition_number: int) -> bytes:
    """The key of a partition's head."""
    return _PARTITION_HEAD + _NUMBER.pack(partition_number)


def row_prefix(table_id: int, index_id: int = TABLE_INDEX_ID) -> bytes:
    """The common prefix of all rows of a table, or of one index."""
    return _ROW_PREFIX.pack(_ROW, table_id, index_id)


def table_range(table_id: int) -> tuple[bytes, bytes]:
    """All rows of a table with its indexes and collection sizes; the end is exclusive."""
    return row_prefix(table_id), row_prefix(table_id + 1)


def range_without_items(table_id: int) -> tuple[bytes, bytes]:
    """The rows of a table that are not its items; the end is exclusive."""
    return row_prefix(table_id, TABLE_INDEX_ID + 1), row_prefix(table_id + 1)


def row_kind(row_key: bytes) -> RowKind:
    """The kind of a row."""
    if row_key[:1] == _TABLE_RECORD:
        return "table"
    if row_key[:1] == _PARTITION_HEAD:
        return "partition"
    # The sizes of item collections have keys among the rows of their table.
    is_row = row_key[:1] == _ROW and table_and_index(row_key)[1] != _COLLECTIONS
    return "item or entry" if is_row else "other"


def table_and_index(row_key: bytes) -> tuple[int, int]:
    """The ids of the table and the index in a row's key; raises ``ValueError``."""
    try:
        _, table_id, index_id = _ROW_PREFIX.unpack_from(row_key)
    except StructError:
        raise ValueError("the key is too short") from None
    return table_id, index_id


def prefix_end(prefix: bytes) -> bytes:
    """The first key after all keys with this prefix."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1])


def change_row(partition_number: int, counter: int) -> bytes:
    """The key of a change record."""
    return _CHANGE + _PAIR.pack(partition_number, counter)


def change_number(row_key: bytes) -> tuple[int, int]:
    """The partition number and the counter in a change record's key."""
    number, counter = _PAIR.unpack_from(row_key, len(_CHANGE))
    return number, counter


def change_range(partition_number: int) -> tuple[bytes, bytes]:
    """All change records and listed changes of a partition; the end is exclusive."""
    return change_row(partition_number, 0), change_row(partition_number + 1, 0)


def listed_prefix(partition_number: int, period: int, *, is_first: bool) -> bytes:
    """The common prefix of the listed changes of a period, which are the first ones or later."""
    kind = _FIRST if is_first else _LATER
    return _LISTED_PREFIX.pack(_CHANGE, partition_number, _LISTED, period, kind)


def listed_range(partition_number: int, before: int | None = None) -> tuple[bytes, bytes]:
    """The listed changes of a partition, or of its periods before one; the end is exclusive."""
    return (
        listed_prefix(partition_number, _FIRST_PERIOD, is_first=True),
        change_row(partition_number + 1, 0)
        if before is None
        else listed_prefix(partition_number, before, is_first=True),
    )


def listed_number(row_key: bytes) -> tuple[int, int]:
    """The partition number and the counter in the key of a listed change."""
    (number,) = _NUMBER.unpack_from(row_key, len(_CHANGE))
    (counter,) = _NUMBER.unpack(row_key[-_NUMBER.size :])
    return number, counter


def listed_period(row_key: bytes) -> int:
    """The period in the key of a listed change."""
    *_, period, _ = _LISTED_PREFIX.unpack_from(row_key)
    return int(period)


def listed_position(row_key: bytes) -> bytes:
    """The position in the key of a listed change."""
    return row_key[_LISTED_PREFIX.size : -_NUMBER.size]


def checkpoint_range(table_id: int) -> tuple[bytes, bytes]:
    """All checkpoints of a table's subscribers; the end is exclusive."""
    return _CHECKPOINT + _NUMBER.pack(table_id), _CHECKPOINT + _NUMBER.pack(table_id + 1)


def replay_checkpoint_range(table_id: int) -> tuple[bytes, bytes]:
    """All checkpoints of a table's replays; the end is exclusive."""
    return index_checkpoint_range(table_id, REPLAYS)


def expiry_range(table_id: int) -> tuple[bytes, bytes]:
    """All expiry times of a table; the end is exclusive."""
    return _EXPIRY + _NUMBER.pack(table_id), _EXPIRY + _NUMBER.pack(table_id + 1)


def expiry_row(table_id: int, expires_at_us: int, position: bytes) -> bytes:
    """The key of the row with the expiry time, in microseconds, of the item at a position."""
    time_us = _EXPIRY_BIAS + expires_at_us
    return _expiry_prefix(table_id, hash_slice(position)) + _NUMBER.pack(time_us) + position


def expiry_span(
    table_id: int, slice_number: int, from_us: int, before_us: int | None = None
) -> tuple[bytes, bytes]:
    """Expiry times of a slice from one time to another; the end is exclusive."""
    prefix = _expiry_prefix(table_id, slice_number)
    return (
        prefix + _NUMBER.pack(_EXPIRY_BIAS + from_us),
        _expiry_end(table_id, slice_number)
        if before_us is None
        else prefix + _NUMBER.pack(_EXPIRY_BIAS + before_us),
    )


def expiry_ends(table_id: int) -> list[bytes]:
    """The keys of permanent rows, one after the times of each slice.

    A search for the next time in a slice ends at that row, instead of scanning over deleted rows of
    later slices.
    """
    return [_expiry_end(table_id, slice_number) for slice_number in range(EXPIRY_SLICES)]


def _expiry_end(table_id: int, slice_number: int) -> bytes:
    return _expiry_prefix(table_id, slice_number) + _EXPIRY_END


def time_and_position(row_key: bytes) -> tuple[int, bytes]:
    """The time, in microseconds, and the position in the key of an expiry row."""
    (time_us,) = _NUMBER.unpack_from(row_key, _EXPIRY_PREFIX.size)
    return time_us - _EXPIRY_BIAS, row_key[_EXPIRY_PREFIX.size + _NUMBER.size :]


def hash_slice(position: bytes) -> int:
    """The slice of the hash space that contains a position."""
    return position[0] >> _SLICE_SHIFT


def _expiry_prefix(table_id: int, slice_number: int) -> bytes:
    return _EXPIRY_PREFIX.pack(_EXPIRY, table_id, slice_number)


def expiry_cursor(table_id: int) -> bytes:
    """The key of the progress of a table's first scan for expiry times."""
    return backfill_cursor(table_id, EXPIRER)


def expiry_checkpoint_range(table_id: int) -> tuple[bytes, bytes]:
    """The checkpoints of all followers that maintain a table's expiry times, and that cursor."""
    return index_checkpoint_range(table_id, EXPIRER)


def backfill_cursor(table_id: int, index_id: int) -> bytes:
    """The key of the progress of an index's backfill, among its followers' checkpoints."""
    return _CHECKPOINT + index_subscriber(table_id, index_id)


def filling_cursor(table_id: int) -> bytes:
    """The key of the progress of copying the items of a restored table or a backup."""
    return backfill_cursor(table_id, TABLE_INDEX_ID)


def index_range(table_id: int, index_id: int) -> tuple[bytes, bytes]:
    """All rows of an index; the end is exclusive."""
    prefix = row_prefix(table_id, index_id)
    return prefix, prefix_end(prefix)


def index_checkpoint_range(table_id: int, index_id: int) -> tuple[bytes, bytes]:
    """All checkpoints of an index's followers, and the cursor of its backfill."""
    prefix = backfill_cursor(table_id, index_id)
    return prefix, prefix_end(prefix)


def trim(table_id: int, partition_number: int) -> bytes:
    """The key of the row with the counter up to which a log was trimmed."""
    return _TRIM + _PAIR.pack(table_id, partition_number)


def trim_range(table_id: int) -> tuple[bytes, bytes]:
    """The trim rows of all logs of a table; the end is exclusive."""
    return _TRIM + _NUMBER.pack(table_id), _TRIM + _NUMBER.pack(table_id + 1)


def checkpoint(subscriber: bytes, partition_number: int) -> bytes:
    """The key of a subscriber's checkpoint; the subscriber's id begins with its table's id."""
    return _CHECKPOINT + subscriber + _NUMBER.pack(partition_number)


def subscriber_checkpoints(subscriber: bytes) -> tuple[bytes, bytes]:
    """All checkpoints of a subscriber; the end is exclusive."""
    prefix = _CHECKPOINT + subscriber
    return prefix, prefix_end(prefix)


def checkpoint_partition(row_key: bytes) -> int:
    """The partition number in the key of a subscriber's checkpoint."""
    (number,) = _NUMBER.unpack(row_key[-_NUMBER.size :])
    return int(number)


def stream(table_id: int, label: str) -> bytes:
    """The key of a DynamoDB stream."""
    return _STREAM + _NUMBER.pack(table_id) + label.encode()


def stream_range(table_id: int) -> tuple[bytes, bytes]:
    """All streams of a table; the end is exclusive."""
    return _STREAM + _NUMBER.pack(table_id), _STREAM + _NUMBER.pack(table_id + 1)


STREAMS: Final = (_STREAM, bytes([_STREAM[0] + 1]))


def item_row(table: TableDefinition, item: Item) -> bytes:
    """The key of an item's row, from the item or its key."""
    return row_prefix(table.table_id) + keys.encode(table.key_schema, item)


def collection_row(table_id: int, partition_key: bytes) -> bytes:
    """The key of an item collection's size; ``partition_key`` is encoded, with its hash."""
    return row_prefix(table_id, _COLLECTIONS) + partition_key


def client_token(period: int, account_id: str, token: str) -> bytes:
    """The key of a client token, in the ten minutes in which it was used."""
    return _CLIENT_TOKEN + _NUMBER.pack(period) + f"{account_id}/{token}".encode()


def client_token_range(trimmed: bytes | None, before: int) -> tuple[bytes, bytes]:
    """All tokens before a period, from the end of the last trim on; the end is exclusive."""
    return trimmed or _CLIENT_TOKEN, _CLIENT_TOKEN + _NUMBER.pack(before)


def reclaim(start: bytes) -> bytes:
    """The key of the row that requests reclaiming the space of a range."""
    return _RECLAIM + start


def reclaim_start(row_key: bytes) -> bytes:
    """The start of the range in a reclaim row's key."""
    return row_key[len(_RECLAIM) :]


def table_backup(backup_id: TableBackupId) -> bytes:
    """The key of the record of a table's backup."""
    return _TABLE_BACKUP + f"{backup_id.table_name}/{backup_id.label}".encode()


def balance(table_id: int, index_id: int, partition_number: int) -> bytes:
    """The key of the balance of a partition of a table (index id 0) or global index."""
    return _BALANCE_KEY.pack(_BALANCE, table_id, index_id, partition_number)


def balance_ids(row_key: bytes) -> tuple[int, int, int]:
    """The table id, index id and partition number in the key of a balance."""
    _, table_id, index_id, partition_number = _BALANCE_KEY.unpack(row_key)
    return table_id, index_id, partition_number


def balance_range(table_id: int) -> tuple[bytes, bytes]:
    """All balances of a table and its indexes; the end is exclusive."""
    return _BALANCE + _NUMBER.pack(table_id), _BALANCE + _NUMBER.pack(table_id + 1)


def collection_range(table_id: int) -> tuple[bytes, bytes]:
    """All sizes of item collections of a table; the end is exclusive."""
    return index_range(table_id, _COLLECTIONS)


def collection_key(row_key: bytes) -> bytes:
    """The encoded partition key in the key of an item collection's size."""
    return row_key[ROW_PREFIX_BYTES:]


def namespace_prefixes(name: str) -> list[bytes]:
    """The prefixes of a namespace's keys, one for each first byte of a key."""
    behind = name.encode() + _NAMESPACE_END
    return [bytes([_NAMESPACE + kind]) + behind for kind in range(_NAMESPACE)]


def split_namespace(row_key: bytes) -> tuple[str, bytes]:
    """The namespace's name in a row's key, and the key within it; raises ``ValueError``.

    The name is empty in the namespace of the configured region, whose keys have no prefix.
    """
    if row_key[0] < _NAMESPACE:
        return "", row_key
    end = row_key.index(_NAMESPACE_END)
    return row_key[1:end].decode(), bytes([row_key[0] - _NAMESPACE]) + row_key[end + 1 :]

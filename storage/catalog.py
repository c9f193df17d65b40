"""The catalog: all tables, and how each is divided into partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import MsgspecError, Struct, msgpack, structs

from dynactor.model.definitions.table import TableDefinition
from dynactor.model.members import Claim
from dynactor.storage import key_layout
from dynactor.storage.row_pages import rows_in
from dynactor.storage.store import Damaged, Group, Row, View


class PartitionRange(Struct, frozen=True):
    """A partition and the first position of its range.

    The range ends at the start of the next one. Partition numbers increase over the whole store and
    are never reused.
    """

    number: int
    start: bytes


class EndedLog(Struct, frozen=True):
    """The log of a partition that was split, kept until all its subscribers have read it.

    ``last`` is the counter of its last change. ``subscribers`` are the ids of the subscribers when
    the log ended; only these read the log.
    """

    number: int
    last: int
    logged_bytes: int
    children: tuple[int, int]
    subscribers: tuple[bytes, ...]


class TableRecord(Struct, frozen=True):
    """A table's entry in the catalog, with its partitions in the order of their ranges."""

    definition: TableDefinition
    partitions: tuple[PartitionRange, ...]
    # The partitions of each global index, by its id.
    index_partitions: dict[int, tuple[PartitionRange, ...]] = {}
    # Logs of the table's own partitions; partitions of an index have no log.
    ended_logs: tuple[EndedLog, ...] = ()
    # Raised with each definition that the table's partitions decide by. It is also in their heads.
    definition_version: int = 0

    def ranges(self, index_id: int) -> tuple[PartitionRange, ...]:
        """The partitions of the table itself (id 0), or of a global index."""
        return self.index_partitions[index_id] if index_id else self.partitions

    def ended_log(self, partition_number: int) -> EndedLog | None:
        """The log of a split partition, while it is kept."""
        for ended in self.ended_logs:
            if ended.number == partition_number:
                return ended
        return None

    @property
    def log_numbers(self) -> list[int]:
        """The numbers of all kept logs, including ended ones, parents before children."""
        ended = [log.number for log in self.ended_logs]
        # A child's number is higher than its parent's.
        return sorted(ended + [partition.number for partition in self.partitions])

    @property
    def partition_numbers(self) -> list[int]:
        """The numbers of all its partitions, including those of its indexes."""
        ranges = (self.partitions, *self.index_partitions.values())
        return [partition.number for index_ranges in ranges for partition in index_ranges]


class CatalogHead(Struct, frozen=True):
    """The next numbers to assign, which only increase."""

    next_table_id: int = 1
    next_partition_number: int = 1


class PartitionHead(Struct, frozen=True):
    """A partition's state, in the row that proves its ownership of the range.

    ``counter`` is the counter of its last change. Counts and sizes are by index id, 0 for the
    table. The size of an index includes the overhead of each entry (S58).
    """

    counter: int = 0
    item_counts: dict[int, int] = {}
    sizes_bytes: dict[int, int] = {}
    # In a partition of a global index: the highest counter applied from each source log.
    applied: dict[int, int] = {}
    # Bytes of all change records ever written to its log.
    logged_bytes: int = 0
    # In a partition of a table: the version of the definition that its next commit is decided by.
    definition_version: int = 0

    def has_same_counts(self, other: PartitionHead) -> bool:
        """Whether the heads are equal, or differ only in the version of the definition."""
        return self == structs.replace(other, definition_version=self.definition_version)

    def divided(self, share: float) -> tuple[PartitionHead, PartitionHead]:
        """The heads of a partition's children; the first child gets this share.

        The children's counts add up exactly; each count is an estimate by the share. Both children
        keep the applied counters.
        """
        counts = {index_id: round(count * share) for index_id, count in self.item_counts.items()}
        sizes = {index_id: round(size * share) for index_id, size in self.sizes_bytes.items()}
        first = PartitionHead(
            0, counts, sizes, self.applied, definition_version=self.definition_version
        )
        second = PartitionHead(
            0,
            {index_id: count - counts[index_id] for index_id, count in self.item_counts.items()},
            {index_id: size - sizes[index_id] for index_id, size in self.sizes_bytes.items()},
            self.applied,
            definition_version=self.definition_version,
        )
        return first, second


_record_decoder = msgpack.Decoder(TableRecord)
_head_decoder = msgpack.Decoder(CatalogHead)
_partition_head_decoder = msgpack.Decoder(PartitionHead)
_claim_decoder = msgpack.Decoder(Claim)
_encoder = msgpack.Encoder()


def encode_partition_head(head: PartitionHead) -> bytes:
    """The bytes of a partition's head row."""
    return _encoder.encode(head)


def decode_partition_head(data: bytes) -> PartitionHead:
    """The head in a row's value."""
    return _partition_head_decoder.decode(data)


def new_head(partition_number: int, head: PartitionHead | None = None) -> Group:
    """The group that writes a partition's first head; for the commit that creates the partition."""
    key = key_layout.partition_head(partition_number)
    return Group(key, None, encode_partition_head(head or PartitionHead()))


def raised_head(partition_number: int, stored: bytes, head: PartitionHead) -> Group:
    """The group that replaces a partition's stored head."""
    return Group(key_layout.partition_head(partition_number), stored, encode_partition_head(head))


async def ended_heads(view: View, partition_numbers: Sequence[int]) -> list[Group]:
    """The groups that delete partitions' heads; their commit fails if a head has changed."""
    keys = list(map(key_layout.partition_head, partition_numbers))
    values = await view.load(keys)
    return [Group(key, value, None) for key, value in zip(keys, values, strict=True)]


def ended_head(partition_number: int, stored: bytes) -> Group:
    """The group that deletes a partition's stored head."""
    return Group(key_layout.partition_head(partition_number), stored, None)


class Catalog(Struct, frozen=True):
    """All tables, as read at start."""

    head: CatalogHead
    head_bytes: bytes | None
    # 0 if an earlier version of the server wrote the catalog, or there is no catalog.
    version: int
    # The count of commits of the node that has loaded the catalog.
    writer_bytes: bytes | None
    tables: tuple[TableRecord, ...]
    # The stored records, by the names of their tables.
    records: Mapping[str, bytes]


async def load_claims(view: View) -> dict[str, Claim]:
    """The claims of all tables with another home than the leader, by table."""
    rows = rows_in(view, *key_layout.CLAIMS)
    return {key_layout.table_name(row.key): decode_claim(row.value) async for row in rows}


async def load_groups(view: View) -> dict[str, str]:
    """The names of the groups of tables with one home, by table."""
    rows = rows_in(view, *key_layout.TABLE_GROUPS)
    return {key_layout.table_name(row.key): row.value.decode() async for row in rows}


async def load(view: View, node: str = "") -> Catalog:
    """Read the catalog; raises ``Damaged`` if a record has an unknown form.

    ``node`` is the name of the loading node, empty if there is only one.
    """
    head_bytes, version, writer_bytes = await view.load(
        [key_layout.CATALOG_HEAD, key_layout.CATALOG_VERSION, key_layout.catalog_writer(node)]
    )
    try:
        head = CatalogHead() if head_bytes is None else _head_decoder.decode(head_bytes)
    except MsgspecError as error:
        raise _unknown("The head of the catalog", error) from error
    tables: list[TableRecord] = []
    records: dict[str, bytes] = {}
    async for row in rows_in(view, *key_layout.TABLE_RECORDS):
        tables.append(_table_in(row))
        records[key_layout.table_name(row.key)] = row.value
    number = int.from_bytes(version or b"", "big")
    return Catalog(head, head_bytes, number, writer_bytes, tuple(tables), records)


def _table_in(row: Row) -> TableRecord:
    try:
        return _record_decoder.decode(row.value)
    except MsgspecError as error:
        raise _unknown(f"The record of table {key_layout.table_name(row.key)}", error) from error


def _unknown(record: str, error: MsgspecError) -> Damaged:
    return Damaged(
        f"{record} is in no form that this version knows: {error}. Start the version that wrote "
        "it, or restore the data directory from a backup."
    )


def encode_head(head: CatalogHead) -> bytes:
    """The bytes of the catalog's head row."""
    return _encoder.encode(head)


def decode_head(data: bytes) -> CatalogHead:
    """The catalog's head in a row's value."""
    return _head_decoder.decode(data)


def encode_claim(claim: Claim) -> bytes:
    """The bytes of a claim's row."""
    return _encoder.encode(claim)


def decode_claim(data: bytes) -> Claim:
    """The claim in a row's value."""
    return _claim_decoder.decode(data)


def encode_record(record: TableRecord) -> bytes:
    """The bytes of a table's record."""
    return _encoder.encode(record)


def decode_record(data: bytes) -> TableRecord:
    """The record in a row's value."""
    return _record_decoder.decode(data)

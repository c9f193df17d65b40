"""The core of a partition makes the same decisions for the same input, without side effects.

The cores run here without an event loop, a store or a clock. Caches in objects, such as a decoded
item, are not part of the compared state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, structs

from dynactor.actors.partition.batch import Batch, TableBatch
from dynactor.actors.partition.index_partition import ApplyChanges, Backfill, IndexCore
from dynactor.actors.partition.item_locks import (
    Accepted,
    Prepare,
    Release,
    Transact,
    TransactionPart,
)
from dynactor.actors.partition.messages import ExpireItems, RestoreItems, WriteItem
from dynactor.actors.partition.roles import Core
from dynactor.actors.partition.table_core import TableCore
from dynactor.actors.runtime.mailbox import Message
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TimeToLive
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update import parse_update
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import INDEX_ENTRY_OVERHEAD_BYTES, ITEM_SIZE_BYTES
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.transaction import Action, ActionWrite
from dynactor.model.writes.write import Delete, Put, Update, Write
from dynactor.storage import codec
from dynactor.storage.catalog import PartitionHead
from dynactor.streams.entry_change import EntryChange
from tests.support.databases.databases import put, table_definition, thread
from tests.support.databases.transacting import check, condition

NUMBER: Final = 7
NOW: Final = 1_795_175_136.5
# Two items of this size almost fill an item collection.
LARGE_BYTES: Final = ITEM_SIZE_BYTES - 1_000
COLLECTION_LIMIT_BYTES: Final = 5 * (ITEM_SIZE_BYTES + INDEX_ENTRY_OVERHEAD_BYTES)

_POSTS: Final = KeyAttribute("posts", "N")
_BY_POSTS: Final = IndexDefinition(9, "all_by_posts", KeySchema((_POSTS,), ()), Projection("ALL"))
PLAIN: Final = table_definition()
INDEXED: Final = structs.replace(
    table_definition(local_sort_keys=("posts",)),
    global_indexes=(GlobalIndex(_BY_POSTS),),
    time_to_live=TimeToLive("at", "ENABLED", NOW - 1e6),
)
WITHOUT_EXPIRY: Final = structs.replace(INDEXED, time_to_live=None)

# -- values ---------------------------------------------------------------------------------


def value_of(thing: Any) -> Any:
    """A value for comparisons, in which objects are replaced by their public fields."""
    if isinstance(thing, (str, bytes, int, float, bool, type(None))):
        return thing
    if isinstance(thing, StoredItem):
        return "StoredItem", thing.version, thing.size_bytes, thing.data
    if isinstance(thing, Mapping):
        return [(value_of(key), value_of(each)) for key, each in thing.items()]
    if isinstance(thing, (list, tuple)):
        return [value_of(each) for each in thing]
    if isinstance(thing, (set, frozenset)):
        return sorted(map(repr, thing))
    if isinstance(thing, BaseException):
        return type(thing).__name__, value_of(thing.args), value_of(vars(thing))
    return type(thing).__name__, [(name, value_of(each)) for name, each in fields(thing)]


def fields(thing: object) -> Iterable[tuple[str, Any]]:
    """The fields of an object and their values."""
    if isinstance(thing, Struct):
        names: Iterable[str] = [name for name in thing.__struct_fields__ if name[0] != "_"]
    else:
        slots = [name for each in type(thing).__mro__ for name in getattr(each, "__slots__", ())]
        names = [*vars(thing)] if hasattr(thing, "__dict__") else slots
        # Leave these fields out, because they refer back to the core.
        names = [name for name in names if name not in {"_rows", "_expiry"}]
    return [(name, getattr(thing, name)) for name in names]


# -- running a core -------------------------------------------------------------------------


class Runner:
    """Runs a core as the partition's loop does, in memory, and makes each decision twice."""

    def __init__(self, core: Core[Any]) -> None:
        self.core = core
        self.head = PartitionHead()
        self.rows: dict[bytes, bytes] = {}
        core.begin(self.head)

    def run(self, messages: Sequence[Message[Any]]) -> list[Any]:
        """Process a batch; return the replies."""
        batch = self.core.open(self.head, messages)
        self._load(batch)
        replies = [self._carry_out(batch, message) for message in messages]
        self._commit(batch)
        return replies

    def _load(self, batch: Batch) -> None:
        self.core.fill(batch, [self.rows.get(key) for key in self.core.row_keys(batch)])
        if isinstance(batch, TableBatch):
            batch.now_epoch_seconds = NOW

    def _carry_out(self, batch: Batch, message: Message[Any]) -> Any:
        before = value_of([self.core, batch, message])
        first = self.core.decide(batch, message)
        second = self.core.decide(batch, message)
        assert value_of(first) == value_of(second)
        assert value_of([self.core, batch, message]) == before

        core, other, sent = deepcopy((self.core, batch, message))
        reply = self.core.apply(batch, message, first)
        assert value_of(core.apply(other, sent, second)) == value_of(reply)
        assert value_of([core, other]) == value_of([self.core, batch])
        return reply

    def commit_round(self, core: TableCore, transaction_ids: Sequence[bytes]) -> None:
        """Commit prepared transactions, as a round does."""
        locked = [each for name in transaction_ids if (each := core.locks.get(name)) is not None]
        batch = core.open_round(self.head, locked)
        self._load(batch)
        again, other, parts = deepcopy((core, batch, locked))
        for each, part in zip(locked, parts, strict=True):
            core.carry_out_locked(batch, each)
            again.carry_out_locked(other, part)
        assert value_of([again, other]) == value_of([core, batch])
        for each in locked:
            core.locks.drop(each.part.transaction_id)
        self.head = batch.head()
        self._write(batch)

    def _commit(self, batch: Batch) -> None:
        self.head = batch.head()
        self._write(batch)
        self.core.accepted(batch, self.head)

    def _write(self, batch: Batch) -> None:
        for key, value in batch.rows.items():
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value


# -- messages -------------------------------------------------------------------------------

SUBJECTS: Final = st.sampled_from("abcd")
KEYS: Final = st.builds(lambda subject: thread("f", subject), SUBJECTS)
EXISTS: Final = condition("attribute_exists(forum)")
MISSING: Final = condition("attribute_not_exists(forum)")
CONDITIONS: Final = st.sampled_from([None, None, EXISTS, MISSING])


def _updated(text: str, value: Item | None = None) -> Any:
    return parse_update(text, Placeholders(None, value))


UPDATES: Final = st.sampled_from(
    [
        None,
        _updated("SET posts = :n", {":n": {"N": "3"}}),
        _updated("ADD posts :n", {":n": {"N": "1"}}),
        # The update is refused if ``posts`` is not a number.
        _updated("SET tally = posts + :n", {":n": {"N": "1"}}),
        _updated("REMOVE posts"),
        _updated("SET posts = :s", {":s": {"S": "no number, so no index takes it"}}),
    ]
)


@st.composite
def items(draw: st.DrawFn) -> Item:
    """An item with some of the attributes that indexes and time to live use."""
    item: Item = dict(draw(KEYS))
    if draw(st.booleans()):
        item["posts"] = {"N": str(draw(st.integers(0, 3)))}
    if draw(st.booleans()):
        item["at"] = {"N": str(int(NOW) + draw(st.sampled_from([-100, 100])))}
    if draw(st.integers(0, 7)) == 0:
        item["text"] = {"S": "x" * LARGE_BYTES}
    return item


def _put(item: Item, held: Any, returned: Any) -> Write:
    return structs.replace(put(item), condition=held, return_values=returned)


WRITES: Final[st.SearchStrategy[Put | Update | Delete]] = st.one_of(
    st.builds(_put, items(), CONDITIONS, st.sampled_from(["NONE", "ALL_OLD"])),
    st.builds(Update, KEYS, UPDATES, CONDITIONS, st.sampled_from(["NONE", "ALL_NEW"])),
    st.builds(Delete, KEYS, CONDITIONS, st.sampled_from(["NONE", "ALL_OLD"])),
)
TRANSACTION_IDS: Final = st.sampled_from([b"t1", b"t2", b"t3"])
SCHEMA: Final = PLAIN.key_schema


def _write(write: Write) -> WriteItem:
    partition_key, sort_key = keys.encoded_parts(SCHEMA, write.identity)
    return WriteItem(partition_key, sort_key, partition_key + sort_key, write)


def _part(transaction_id: bytes, writes: list[ActionWrite]) -> TransactionPart:
    actions: dict[bytes, Action] = {}
    for write in writes:
        parts = keys.encoded_parts(SCHEMA, write.identity)
        position = b"".join(parts)
        actions.setdefault(position, Action(len(actions), *parts, position, write))
    return TransactionPart(transaction_id, len(actions), tuple(actions.values()))


def _positions(wanted: Iterable[Item]) -> tuple[bytes, ...]:
    return tuple(keys.encode(SCHEMA, each) for each in wanted)


def _restore(wanted: list[Item]) -> RestoreItems:
    rows = tuple(codec.encode(StoredItem.of(each, 1)) for each in wanted)
    return RestoreItems(_positions(wanted), rows)


PARTS: Final = st.builds(
    _part,
    TRANSACTION_IDS,
    st.lists(st.one_of(WRITES, st.builds(check, KEYS)), min_size=1, max_size=3),
)
OTHER_ROWS: Final = st.sampled_from([(), ((b"token", b"row"),)])
MESSAGES: Final[st.SearchStrategy[Message[Any]]] = st.one_of(
    st.builds(_write, WRITES),
    st.builds(_write, WRITES),
    st.builds(Prepare, PARTS),
    st.builds(Transact, PARTS, OTHER_ROWS),
    st.builds(Release, TRANSACTION_IDS, st.booleans()),
    st.builds(ExpireItems, st.sampled_from(["at", "posts"]), st.builds(_positions, st.lists(KEYS))),
    st.builds(_restore, st.lists(items(), max_size=3)),
)


def is_sensible(core: TableCore, message: Message[Any]) -> bool:
    """Whether a coordinator may send the message now; it prepares each transaction once."""
    return not isinstance(message, Prepare) or core.locks.get(message.part.transaction_id) is None


# A step is a batch of messages, or the ids of transactions that a round commits.
STEPS: Final = st.one_of(
    st.lists(MESSAGES, min_size=1, max_size=6), st.frozensets(TRANSACTION_IDS, max_size=3)
)


@given(steps=st.lists(STEPS, max_size=8), has_indexes=st.booleans())
def test_the_core_of_a_table_partition_decides_the_same_twice_without_side_effects(
    *, steps: list[list[Message[Any]] | frozenset[bytes]], has_indexes: bool
) -> None:
    core = TableCore(NUMBER, INDEXED if has_indexes else PLAIN, COLLECTION_LIMIT_BYTES)
    runner = Runner(core)
    for step in steps:
        if isinstance(step, frozenset):
            runner.commit_round(core, sorted(step))
            continue
        prepared: dict[bytes, None] = {}
        batch: list[Message[Any]] = []
        for message in step:
            if isinstance(message, Prepare):
                transaction_id = message.part.transaction_id
                if transaction_id in prepared or not is_sensible(core, message):
                    continue
                prepared[transaction_id] = None
            batch.append(message)
        runner.run(batch)


def test_the_random_messages_have_all_kinds_of_outcomes() -> None:
    """The random messages have all kinds of outcomes, so the test above covers these."""
    runner = Runner(TableCore(NUMBER, INDEXED, COLLECTION_LIMIT_BYTES))
    large = {**thread("f", "l", posts=1), "text": {"S": "x" * LARGE_BYTES}}
    written = runner.run([_write(put(large)), _write(put(thread("f", "a", posts=1)))])
    assert [each.collection_size_bytes for each in written][1] > LARGE_BYTES
    full, missing = runner.run(
        [
            _write(put({**large, "subject": {"S": "m"}})),
            _write(Delete(thread("f", "z"), EXISTS)),
        ]
    )
    assert not isinstance(full, Exception)
    assert type(missing).__name__ == "ConditionalCheckFailedException"
    (over,) = runner.run([_write(put({**large, "subject": {"S": "n"}}))])
    assert type(over).__name__ == "ItemCollectionSizeLimitExceededException"
    old = {**thread("f", "old"), "at": {"N": str(int(NOW) - 100)}}
    _, expired = runner.run(
        [_write(put(old)), ExpireItems("at", _positions([old, old, thread("f", "a")]))]
    )
    assert expired.deleted_items == 1
    accepted, conflict = runner.run(
        [
            Prepare(_part(b"t1", [put(thread("f", "a"))])),
            _write(put(thread("f", "a", posts=2))),
        ]
    )
    assert isinstance(accepted, Accepted)
    assert type(conflict).__name__ == "TransactionConflictException"


def _entry(number: int) -> bytes:
    return codec.encode(StoredItem.of({"n": {"N": str(number)}}, number))


@st.composite
def entry_messages(draw: st.DrawFn) -> ApplyChanges | Backfill:
    """A message to an index partition; some messages are duplicates or late."""
    positions = st.sampled_from([b"a", b"b", b"c"])
    values = st.builds(_entry, st.integers(0, 10_000))
    if draw(st.booleans()):
        found = draw(st.lists(st.tuples(positions, values), min_size=1, max_size=3))
        bounds = draw(st.sampled_from([None, (b"a", b"b"), (b"c", b"d")]))
        return Backfill(tuple(found), bounds)
    first = draw(st.integers(1, 9))
    changes = draw(
        st.lists(st.tuples(positions, st.none() | values, st.none() | st.just(5)), max_size=4)
    )
    return ApplyChanges(
        draw(st.integers(1, 2)),
        tuple(EntryChange(first + at, *each) for at, each in enumerate(changes)),
        draw(st.booleans()),
    )


@given(st.lists(st.lists(entry_messages(), min_size=1, max_size=4), max_size=6))
def test_the_core_of_an_index_partition_decides_the_same_twice_without_side_effects(
    batches: list[list[ApplyChanges | Backfill]],
) -> None:
    runner = Runner(IndexCore(_BY_POSTS.index_id, b"rows"))
    for batch in batches:
        runner.run(batch)

"""Guards of a commit require rows of other owners, on every engine and on the fakes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

import pytest

from dynactor.storage.namespaces import Namespace, StoreSlice
from dynactor.storage.store import Conflict, Fenced, Group, Store
from tests.storage.contract.conftest import OpenStore
from tests.support.databases.databases import HeldStore
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.history_store import DelayedStore, Delays
from tests.support.stores.losing_store import LosingStore
from tests.support.stores.stepped_store import SteppedStore

CLAIM: Final = b"claim"

FAKES: Final[dict[str, Callable[[Store], Store]]] = {
    "faulty": FaultyStore,
    "stepped": SteppedStore,
    "losing": LosingStore,
    "delayed": lambda inner: DelayedStore(inner, Delays(seed=1, most_seconds=0.001)),
    "held": HeldStore,
    "slice": lambda inner: StoreSlice(inner, Namespace("us-west-2")),
}


@pytest.fixture
async def store(engine_name: str, open_store: OpenStore) -> AsyncIterator[Store]:
    async with open_store() as store:
        yield FAKES[engine_name](store) if engine_name in FAKES else store


def group(name: bytes, *guards: tuple[bytes, bytes | None]) -> Group:
    """The first group under the head ``~name``; it puts one row."""
    return Group(b"~" + name, None, b"1", puts=[(name, b"1")], guards=guards)


async def put(store: Store, key: bytes, value: bytes) -> None:
    await (await store.commit([Group(b"~~" + key + value, None, b"1", puts=[(key, value)])]))


@pytest.mark.parametrize("required", [None, b"ours"])
async def test_a_commit_is_written_if_its_guards_hold(store: Store, required: bytes | None) -> None:
    if required is not None:
        await put(store, CLAIM, required)
    await (await store.commit([group(b"a", (CLAIM, required), (b"absent", None))]))
    assert await store.latest.load([b"a", CLAIM, b"absent"]) == [b"1", required, None]


@pytest.mark.parametrize(
    ("stored", "required"), [(None, b"ours"), (b"theirs", b"ours"), (b"theirs", None)]
)
async def test_a_guard_that_fails_refuses_the_whole_commit(
    store: Store, stored: bytes | None, required: bytes | None
) -> None:
    if stored is not None:
        await put(store, CLAIM, stored)
    with pytest.raises(Fenced):
        await store.commit([group(b"a"), group(b"b", (b"absent", None), (CLAIM, required))])
    assert await store.latest.load([b"a", b"b", b"~a", b"~b"]) == [None] * 4
    # The heads are unchanged, so the same groups are accepted without the guard.
    await (await store.commit([group(b"a"), group(b"b")]))


async def test_a_guard_sees_the_last_accepted_value_before_it_is_durable(store: Store) -> None:
    await store.commit([Group(b"~claim", None, b"1", puts=[(CLAIM, b"theirs")])])
    with pytest.raises(Fenced):
        await store.commit([group(b"a", (CLAIM, None))])
    await (await store.commit([group(b"a", (CLAIM, b"theirs"))]))


async def test_a_guard_may_be_the_head_of_another_writer(store: Store) -> None:
    await (await store.commit([Group(CLAIM, None, b"1")]))
    await (await store.commit([group(b"a", (CLAIM, b"1"))]))
    await (await store.commit([Group(CLAIM, b"1", b"2")]))
    with pytest.raises(Fenced):
        await store.commit([group(b"b", (CLAIM, b"1"))])


async def test_a_commit_may_put_a_row_that_its_guard_requires_to_be_absent(store: Store) -> None:
    def with_token(name: bytes) -> Group:
        puts = [(b"token", name)]
        return Group(b"~" + name, None, b"1", puts, guards=[(b"token", None)])

    await (await store.commit([with_token(b"a")]))
    with pytest.raises(Fenced):
        await store.commit([with_token(b"b")])
    assert await store.latest.load([b"token"]) == [b"a"]


async def test_a_failed_guard_is_reported_before_a_wrong_head_in_any_group(store: Store) -> None:
    await (await store.commit([group(b"a")]))
    with pytest.raises(Fenced):
        await store.commit([group(b"a"), group(b"b", (CLAIM, b"ours"))])
    with pytest.raises(Conflict) as refused:
        await store.commit([group(b"a", (CLAIM, None))])
    assert not isinstance(refused.value, Fenced)

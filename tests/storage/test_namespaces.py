"""Namespaces of a store: each behaves like a separate store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from dynactor.storage import key_layout
from dynactor.storage.namespaces import (
    Namespace,
    Separation,
    StoreSlice,
    settle_separation,
    stored_namespaces,
)
from dynactor.storage.store import CannotOpen, Conflict, Group, Store, View
from tests.support.stores.store import memory_store

# Some names are prefixes of others, and one region has two access keys.
NAMESPACES = [
    Namespace("us"),
    Namespace("us-east-1"),
    Namespace("us-east-1", "key"),
    Namespace("us-east-1", "key2"),
    Namespace("us-east-10"),
]
# Keys at the start, in the middle and at the end of one key range, and of all possible keys.
KEYS = [b"\x02", b"\x02\x00", b"\x02a", b"\x02a/\x00b", b"\x02\xff\xff", b"\x03", b"\x03\xff"]
KIND = (b"\x02", b"\x03")
MANY = 1 << 30


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with memory_store() as store:
        yield store


@pytest.fixture
async def filled(store: Store) -> list[Store]:
    """The store itself and its namespaces.

    In each, every key has the namespace's number as value.
    """
    stores = [store, *(StoreSlice(store, namespace) for namespace in NAMESPACES)]
    for number, each in enumerate(stores):
        value = b"%d" % number
        head = Group(key_layout.CATALOG_HEAD, None, value, puts=[(key, value) for key in KEYS])
        await (await each.commit([head]))
    return stores


async def keys_of(view: View, start: bytes, end: bytes, **options: bool) -> list[bytes]:
    page = await view.page(start, end, max_rows=MANY, max_bytes=MANY, **options)
    return [row.key for row in page]


async def test_a_key_has_a_separate_value_in_each_namespace(filled: list[Store]) -> None:
    for number, each in enumerate(filled):
        expected = [b"%d" % number] * len(KEYS)
        assert await each.latest.load(KEYS) == expected
        assert await each.durable().load(KEYS) == expected
        assert [each.durable().cached(key) for key in KEYS] == expected


async def test_a_page_ends_with_its_namespace(filled: list[Store]) -> None:
    of_kind = [key for key in KEYS if key[:1] == b"\x02"]
    for number, each in enumerate(filled):
        page = await each.latest.page(*KIND, max_rows=MANY, max_bytes=MANY)
        assert page == [(key, b"%d" % number) for key in of_kind]
        assert await keys_of(each.durable(), *KIND, reverse=True) == of_kind[::-1]
        assert await keys_of(each.latest, b"\x02\x00", b"\x02b") == of_kind[1:4]
        assert await keys_of(each.latest, b"\x02b", b"\x02b") == []


async def test_a_range_is_deleted_and_reclaimed_in_one_namespace(filled: list[Store]) -> None:
    for number, each in enumerate(filled):
        group = Group(b"\x01", None, b"1", deletes=[b"\x03"], range_deletes=[KIND])
        await (await each.commit([group]))
        await each.reclaim(*KIND)
        for other_number, other in enumerate(filled):
            left = [b"\x03\xff"] if other_number <= number else KEYS
            found = [
                key
                for kind in (KIND, (b"\x03", b"\x04"))
                for key in await keys_of(other.latest, *kind)
            ]
            assert found == left


async def test_a_head_belongs_to_its_namespace(filled: list[Store]) -> None:
    group = Group(key_layout.CATALOG_HEAD, b"0", b"moved")
    for each in filled[1:]:
        with pytest.raises(Conflict):
            await each.commit([group])
    await (await filled[0].commit([group]))
    assert await filled[1].latest.load([key_layout.CATALOG_HEAD]) == [b"1"]


async def test_the_namespaces_with_a_catalog_are_found(filled: list[Store]) -> None:
    assert set(await stored_namespaces(filled[0].latest)) == set(NAMESPACES)


def test_a_key_contains_its_namespace() -> None:
    prefixes = key_layout.namespace_prefixes("us-east-1/key")
    assert key_layout.split_namespace(prefixes[3] + b"\x00rest") == (
        "us-east-1/key",
        b"\x03\x00rest",
    )
    assert key_layout.split_namespace(b"\x03rest") == ("", b"\x03rest")


@pytest.mark.parametrize("separation", ["shared", "region", "access key"])
async def test_an_empty_store_accepts_any_separation_and_keeps_it(
    store: Store, separation: Separation
) -> None:
    assert await settle_separation(store, separation, "home") == "home"
    kept = "other" if separation == "shared" else "home"
    assert await settle_separation(store, separation, "other") == kept


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("region", "shared"),
        ("region", "access key"),
        ("access key", "shared"),
        ("access key", "region"),
    ],
)
async def test_a_separation_that_would_hide_tables_is_refused(
    store: Store, before: Separation, after: Separation
) -> None:
    await settle_separation(store, before, "home")
    with pytest.raises(CannotOpen, match="or choose another directory"):
        await settle_separation(store, after, "home")


async def test_shared_tables_become_tables_of_the_home_region_and_of_no_access_key(
    store: Store,
) -> None:
    await (await store.commit([Group(key_layout.CATALOG_HEAD, None, b"1")]))
    with pytest.raises(CannotOpen):
        await settle_separation(store, "access key", "home")
    assert await settle_separation(store, "region", "home") == "home"

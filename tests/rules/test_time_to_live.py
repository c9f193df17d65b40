"""S116-S128: time to live, on a virtual clock; S129-S131 are in test_session_data.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from dynactor.model.keys import key as keys
from tests.support.clients.clients import STREAMS_TARGET_PREFIX, WireClient
from tests.support.servers.clocked_server import Clocked, clocked_server
from tests.support.streams.streams import records_of
from tests.support.tables.tables import global_index, local_index, table, wait_until_indexes_active
from tests.support.tables.ttl import (
    Item,
    found,
    put_all,
    scanned,
    specification,
    status,
    switch,
    wait_swept,
    wait_until,
)

TTL = "ExpirationTime"

pytestmark = pytest.mark.ours_alone("no other server has a clock to set")

FIVE_YEARS = 5 * 365 * 24 * 60 * 60
SERVICE = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}
KEYS = ("UserName:S", "SessionId:S")
BOTH_IMAGES = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


class ClockedServer(NamedTuple):
    """A server on a virtual clock, and its clients."""

    clocked: Clocked
    wire: WireClient
    streams: WireClient


@contextmanager
def ttl_server(epoch_seconds: float, *arguments: str) -> Iterator[ClockedServer]:
    with (
        clocked_server(epoch_seconds, *arguments) as clocked,
        closing(WireClient(clocked.endpoint)) as wire,
        closing(WireClient(clocked.endpoint, STREAMS_TARGET_PREFIX)) as streams,
    ):
        yield ClockedServer(clocked, wire, streams)


@pytest.fixture(scope="module")
def immediate() -> Iterator[ClockedServer]:
    """A server that deletes expired items without a delay; all tests share its clock."""
    with ttl_server(1_600_000_000, "--ttl-delay-seconds", "0", "--copy-messages") as immediate:
        yield immediate


@pytest.fixture(scope="module")
def delayed() -> Iterator[ClockedServer]:
    """A server that deletes items 100 seconds after their expiry."""
    with ttl_server(1_600_000_000, "--ttl-delay-seconds", "100", "--copy-messages") as delayed:
        yield delayed


@pytest.fixture
def name(immediate: ClockedServer) -> Iterator[str]:
    """A table of sessions on the server without a delay, with time to live."""
    with table(immediate.wire, *KEYS) as name:
        switch(immediate.wire, name, TTL)
        yield name


def session(user: str, session_id: str, expires: float | str | Decimal | None = None) -> Item:
    item: Item = {"UserName": {"S": user}, "SessionId": {"S": session_id}}
    return item if expires is None else item | {TTL: {"N": str(expires)}}


def key(item: Item) -> Item:
    return {name: item[name] for name in ("UserName", "SessionId")}


def sessions(wire: WireClient, name: str) -> set[str]:
    return {item["SessionId"]["S"] for item in scanned(wire, name)}


def swept(immediate: ClockedServer, name: str, user: str) -> None:
    """Wait until the expired items of a user are deleted."""
    expired = {TTL: {"N": str(immediate.clocked.now - 1)}}
    wait_swept(immediate.wire, name, {"UserName": {"S": user}}, "SessionId", expired)


def test_s116_enabling_names_exactly_one_attribute(immediate: ClockedServer):
    wire = immediate.wire
    with table(wire, *KEYS) as name:
        nothing = {"TableName": name, "TimeToLiveSpecification": {"Enabled": True}}
        assert "attributeName" in str(wire.refused("UpdateTimeToLive", nothing).message)
        assert status(wire, name) == "DISABLED"
        switch(wire, name, TTL)
        second = {"TableName": name, "TimeToLiveSpecification": specification("Other")}
        assert wire.refused("UpdateTimeToLive", second) == (
            "ValidationException",
            f"TimeToLive is active on a different AttributeName: current AttributeName is {TTL}",
        )
        assert wire("DescribeTimeToLive", {"TableName": name}) == {
            "TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": TTL}
        }


def test_s117_the_backlog_of_one_partition_does_not_delay_another():
    start = 1_600_000_000
    options = ("--ttl-delay-seconds", "0", "--ttl-deletes-per-second", "300")
    with ttl_server(start, *options) as (clocked, wire, _), table(wire, *KEYS) as name:
        switch(wire, name, TTL)
        for first in range(0, 2_000, 25):
            puts = [
                {"PutRequest": {"Item": session("crowd", f"{n:05}", start + 10)}}
                for n in range(first, first + 25)
            ]
            wire("BatchWriteItem", {"RequestItems": {name: puts}})
        alone = [session(user, "only", start + 11) for user in "abcdefgh"]
        put_all(wire, name, *alone)
        clocked.set(start + 20)
        others = [item for item in alone if quarter(item) != quarter(session("crowd", ""))]
        assert others
        wait_until(lambda: all(found(wire, name, key(item)) is None for item in others))
        assert clocked.deleted_items(name) < 1_500


def quarter(item: Item) -> int:
    """The quarter of the hash space; each partition of an on-demand table has one."""
    return keys.partition_hash([item["UserName"]])[0] >> 6


def test_s118_only_a_number_counts_as_seconds_of_the_epoch(immediate: ClockedServer, name: str):
    past = str(immediate.clocked.now - 100)
    others: list[dict[str, Any]] = [
        {"S": past},
        {"NS": [past]},
        {"L": [{"N": past}]},
        {"M": {"N": {"N": past}}},
        {"B": "MTYwMDAwMDAwMA=="},
        {"NULL": True},
        {"BOOL": True},
    ]
    items = [session("u", next(iter(value))) | {TTL: value} for value in others]
    milliseconds = session("u", "milliseconds", int(past) * 1000)
    put_all(immediate.wire, name, *items, milliseconds, session("u", "without"))

    swept(immediate, name, "u")

    assert sessions(immediate.wire, name) == {
        *(item["SessionId"]["S"] for item in items),
        "milliseconds",
        "without",
    }


def test_s119_an_item_expires_if_its_time_is_less_than_five_years_ago(
    immediate: ClockedServer, name: str
):
    now = immediate.clocked.now
    stay = {
        "now": Decimal(now),
        "a little later": now + Decimal("0.001"),
        "five years": Decimal(now - FIVE_YEARS),
        "more than five years": Decimal(now - FIVE_YEARS - 1),
        "before 1970": Decimal(-1),
    }
    go = {
        "a little earlier": now - Decimal("0.001"),
        "a second": Decimal(now - 1),
        "five years less a second": Decimal(now - FIVE_YEARS + 1),
        "five years less a little": now - FIVE_YEARS + Decimal("0.001"),
    }
    for session_id, expires in {**stay, **go}.items():
        put_all(immediate.wire, name, session("u", session_id, expires))

    wait_until(lambda: not sessions(immediate.wire, name) & set(go))
    swept(immediate, name, "u")

    assert sessions(immediate.wire, name) == set(stay)


def test_s120_a_sweep_lists_expired_items_and_deletes_them_after_the_delay(delayed: ClockedServer):
    clocked, wire, _ = delayed
    lag = "dynactor_time_to_live_lag_seconds"
    with table(wire, *KEYS) as name:
        switch(wire, name, TTL)
        now = clocked.now
        item = session("u", "s", now + 10)
        put_all(wire, name, item)
        clocked.set(now + 60)
        # The sweep has listed the item, but does not delete it before the delay.
        wait_until(lambda: clocked.metric(lag, name) == 50)
        assert found(wire, name, key(item)) == item
        # The delay is over, and the sweep deletes the item.
        clocked.set(now + 110)
        wait_until(lambda: found(wire, name, key(item)) is None)
        wait_until(lambda: clocked.metric(lag, name) == 0)


def test_s121_a_sweep_consumes_no_units_and_delays_no_write(immediate: ClockedServer):
    clocked, wire, _ = immediate
    indexes = {"GlobalSecondaryIndexes": [global_index("ByTime", "SessionId")]}
    with table(wire, *KEYS, **indexes) as name:
        switch(wire, name, TTL)
        now = clocked.now
        put_all(wire, name, *(session(f"u{n}", "s", now + 10) for n in range(300)))
        stays = session("stays", "s")
        request = {"TableName": name, "Item": stays, "ReturnConsumedCapacity": "INDEXES"}
        first = wire("PutItem", request)["ConsumedCapacity"]
        clocked.set(now + 20)
        # Each put inserts the item again, which costs a unit of the table and one of the index.
        while len(scanned(wire, name, Select="ALL_ATTRIBUTES")) > 1:
            wire("DeleteItem", {"TableName": name, "Key": key(stays)})
            assert wire("PutItem", request)["ConsumedCapacity"] == first
        assert first["CapacityUnits"] == 2
        assert clocked.deleted_items(name) == 300


def test_s122_an_expired_item_is_deleted_from_every_index(immediate: ClockedServer):
    clocked, wire, _ = immediate
    with table(
        wire,
        *(*KEYS, "Device:S"),
        indexes=(local_index("ByDevice", "UserName", "Device"),),
        GlobalSecondaryIndexes=[
            global_index("OfDevice", "Device", "UserName"),
            global_index("OfSession", "SessionId", projection="KEYS_ONLY"),
        ],
    ) as name:
        switch(wire, name, TTL)
        now = clocked.now
        device = {"Device": {"S": "phone"}}
        goes, stays = session("u", "goes", now + 5), session("u", "stays", now + 50)
        put_all(wire, name, goes | device, stays | device)
        names = ("ByDevice", "OfDevice", "OfSession")
        for index in names:
            wait_until(lambda index=index: len(scanned(wire, name, IndexName=index)) == 2)
        clocked.set(now + 6)
        wait_until(lambda: found(wire, name, key(goes)) is None)
        # A local index changes with its table, a global index shortly afterwards.
        assert [each["SessionId"]["S"] for each in scanned(wire, name, IndexName="ByDevice")] == [
            "stays"
        ]
        for index in names:
            wait_until(lambda index=index: len(scanned(wire, name, IndexName=index)) == 1)
        described = wait_until_indexes_active(wire, name)
        every = described["LocalSecondaryIndexes"] + described["GlobalSecondaryIndexes"]
        assert [index["ItemCount"] for index in every] == [1, 1, 1]


def test_s123_the_stream_record_of_an_expiry_has_the_identity_of_the_service(
    immediate: ClockedServer,
):
    clocked, wire, streams = immediate
    with table(wire, *KEYS, StreamSpecification=BOTH_IMAGES) as name:
        arn = wire("DescribeTable", {"TableName": name})["Table"]["LatestStreamArn"]
        switch(wire, name, TTL)
        now = clocked.now
        expires, deleted = session("u", "expires", now + 5), session("u", "deleted", now + 5)
        put_all(wire, name, expires, deleted)
        wire("DeleteItem", {"TableName": name, "Key": key(deleted)})
        clocked.set(now + 6)
        wait_until(lambda: found(wire, name, key(expires)) is None)

        records = records_of(streams, arn)

        removed = {
            record["dynamodb"]["Keys"]["SessionId"]["S"]: record
            for record in records
            if record["eventName"] == "REMOVE"
        }
        assert removed["expires"]["userIdentity"] == SERVICE
        assert removed["expires"]["dynamodb"]["OldImage"] == expires
        assert "NewImage" not in removed["expires"]["dynamodb"]
        assert removed["expires"]["dynamodb"]["ApproximateCreationDateTime"] == now + 6
        assert [record for record in records if "userIdentity" in record] == [removed["expires"]]
        assert len(records) == 4


def test_s124_an_expired_item_exists_until_the_configured_delay_is_over(delayed: ClockedServer):
    clocked, wire, _ = delayed
    with table(wire, *KEYS) as name:
        switch(wire, name, TTL)
        now = clocked.now
        first, second = session("u", "first", now + 1), session("u", "second", now + 2)
        put_all(wire, name, first, second)
        clocked.set(now + 101)
        wait_until(lambda: found(wire, name, key(first)) is None)
        assert found(wire, name, key(second)) == second
        clocked.set(now + 102)
        wait_until(lambda: found(wire, name, key(second)) is None)


@pytest.fixture
def expired(delayed: ClockedServer) -> Iterator[tuple[str, Item]]:
    """A table with an item that has expired and is not deleted yet, and one that has not."""
    with table(delayed.wire, *KEYS) as name:
        switch(delayed.wire, name, TTL)
        now = delayed.clocked.now
        item = session("u", "expired", now + 10)
        put_all(delayed.wire, name, item, session("u", "valid", now + 10_000))
        delayed.clocked.set(now + 50)
        yield name, item


def of_user(name: str, **members: Any) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeyConditionExpression": "UserName = :user",
        **members,
        "ExpressionAttributeValues": {
            ":user": {"S": "u"},
            **members.get("ExpressionAttributeValues", {}),
        },
    }


def test_s125_an_expired_item_is_still_read_until_it_is_deleted(
    delayed: ClockedServer, expired: tuple[str, Item]
):
    name, item = expired
    assert found(delayed.wire, name, key(item)) == item
    assert item in delayed.wire("Query", of_user(name))["Items"]
    assert item in scanned(delayed.wire, name)


def test_s126_a_filter_hides_expired_items(delayed: ClockedServer, expired: tuple[str, Item]):
    name, item = expired
    hidden = {
        "FilterExpression": "ExpirationTime > :now",
        "ExpressionAttributeValues": {":now": {"N": str(delayed.clocked.now)}},
    }
    for answer in (
        delayed.wire("Query", of_user(name, **hidden)),
        delayed.wire("Scan", {"TableName": name, **hidden}),
    ):
        assert [each["SessionId"]["S"] for each in answer["Items"]] == ["valid"]
        assert answer["ScannedCount"] == 2
    assert found(delayed.wire, name, key(item)) == item


@pytest.mark.parametrize(
    "change",
    ["SET ExpirationTime = :later", "REMOVE ExpirationTime", "SET ExpirationTime = :text"],
)
def test_s127_an_expired_item_with_an_updated_time_is_not_deleted(
    delayed: ClockedServer, expired: tuple[str, Item], change: str
):
    name, item = expired
    now = delayed.clocked.now
    values = {":later": {"N": str(now + 100_000)}, ":text": {"S": str(now - 10)}}
    used = {name: value for name, value in values.items() if name in change}
    delayed.wire(
        "UpdateItem",
        {
            "TableName": name,
            "Key": key(item),
            "UpdateExpression": change,
            **({"ExpressionAttributeValues": used} if used else {}),
        },
    )
    # Another expired item of the user is deleted, but the updated item stays.
    behind = session("u", "behind", now - 1)
    put_all(delayed.wire, name, behind)
    delayed.clocked.set(now + 100)
    wait_until(lambda: found(delayed.wire, name, key(behind)) is None)
    assert found(delayed.wire, name, key(item)) is not None


def test_s127_an_expired_item_is_deleted_despite_updates_of_other_attributes(
    delayed: ClockedServer, expired: tuple[str, Item]
):
    name, item = expired
    delayed.wire(
        "UpdateItem",
        {
            "TableName": name,
            "Key": key(item),
            "UpdateExpression": "SET Visits = :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        },
    )
    delayed.clocked.set(delayed.clocked.now + 100)
    wait_until(lambda: found(delayed.wire, name, key(item)) is None)


def test_s128_the_deletions_of_a_table_are_counted(immediate: ClockedServer, name: str):
    now = immediate.clocked.now
    put_all(immediate.wire, name, *(session(f"u{n}", "s", now - 1) for n in range(20)))
    wait_until(lambda: sessions(immediate.wire, name) == set())
    wait_until(lambda: immediate.clocked.deleted_items(name) == 20)

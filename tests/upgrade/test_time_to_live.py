"""Expiry times listed by an earlier version are still valid."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.support.clients.clients import WireClient
from tests.support.servers.server import running_server
from tests.support.servers.upgraded import Item, Written, in_order, scanned, upgraded
from tests.support.streams.streams import records_of
from tests.support.tables.ttl import wait_until

NAME = "Sessions"


def test_expired_items_are_deleted_at_once_and_others_at_their_time(
    written: Written, directory: Path
):
    def lasting(items: list[Item], groups: tuple[str, ...]) -> list[Item]:
        return in_order([item for item in items if item["id"]["S"].startswith(groups)])

    items = written.items[NAME]
    with upgraded(written, directory) as server:

        def left() -> list[Item]:
            return in_order(scanned(server.wire, NAME))

        wait_until(lambda: left() == lasting(items, ("last", "no-")))
        server.clock.set(now=written.last_expiry_epoch_seconds + 10)
        wait_until(lambda: left() == lasting(items, ("no-",)))
        records = records_of(server.streams, written.streams[NAME]["StreamArn"])
        expired = [each for each in records if "userIdentity" in each]
        assert len(expired) == 15


def test_items_put_after_the_upgrade_expire(written: Written, directory: Path):
    with upgraded(written, directory) as server:
        expires = {"N": str(int(written.now_epoch_seconds) + 100)}
        item = {"id": {"S": "new"}, "expires": expires}
        server.wire("PutItem", {"TableName": NAME, "Item": item})
        server.clock.step(200)
        wait_until(lambda: item not in scanned(server.wire, NAME))


def test_a_server_with_real_time_starts_after_one_with_an_earlier_virtual_clock(
    written: Written, directory: Path
):
    with (
        running_server(data_dir=directory) as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        without_time = [item for item in written.items[NAME] if item["id"]["S"].startswith("no-")]
        wait_until(lambda: in_order(scanned(wire, NAME)) == in_order(without_time))
        assert scanned(wire, "Orders") == written.items["Orders"]

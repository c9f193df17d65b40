"""The kinds of items of a table, by the patterns of their keys, in the browser."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from playwright.sync_api import expect

from tests.console.conftest import Console, create_table
from tests.support.clients.clients import boto3_client
from tests.support.servers.server import Server

PATTERNS: Final = """(values) =>
  import('/console/app/entities.js').then(({entitiesOf}) => {
    const items = values.map(([pk, sk]) => ({pk, sk}));
    const source = {name: '', partition: ['pk'], sort: ['sk']};
    const table = {keys: ['pk', 'sk'], sources: [source]};
    return entitiesOf(items, table).map((each) => [each.partition, each.sort, each.count]);
  })"""


def patterns(console: Console, *keys: tuple[str, str]) -> list[list[Any]]:
    found: list[list[Any]] = console.open("tables").evaluate(
        PATTERNS, [[{"S": partition}, {"S": sort}] for partition, sort in keys]
    )
    return found


def test_parts_of_keys_that_items_share_are_names(console: Console):
    shop = [("SHOP#1", f"ORDER#2026-01-0{day}#ITEM#{day}") for day in range(1, 6)]
    shop += [("SHOP#1", "PROFILE"), ("SHOP#2", "PROFILE"), ("77#SHOP", "UNIQUE|x")]
    assert patterns(console, *shop) == [
        ["SHOP#…", "ORDER#…#ITEM#…", 5],
        ["SHOP#…", "PROFILE", 2],
        ["…#SHOP", "UNIQUE|…", 1],
    ]


def test_keys_without_names_are_shown_by_their_kind(console: Console):
    identity = "0b0e7b2c-1111-4222-8333-444455556666"
    assert patterns(console, *[("a@b.c", f"2026-11-2{day}") for day in range(2)]) == [
        ["text", "date", 2]
    ]
    assert patterns(console, (identity, "12"), (identity, "13")) == [["UUID", "number", 2]]


def test_a_kind_of_items_leads_to_its_items(console: Console, server: Server):
    with closing(boto3_client(server.endpoint)) as client:
        create_table(client, "shop", "pk", "sk", index=("by-state", "state", "ALL"))
        for number in range(6):
            order = {"pk": {"S": f"SHOP#{number % 2}"}, "sk": {"S": f"ORDER#{number}"}}
            state = {"state": {"S": "OPEN" if number % 3 else "PAID"}}
            client.put_item(TableName="shop", Item=order | state)
        for number in range(2):
            profile = {"pk": {"S": f"SHOP#{number}"}, "sk": {"S": "PROFILE"}, "name": {"S": "x"}}
            client.put_item(TableName="shop", Item=profile)
    page = console.open("table/shop/keys")
    profiles = page.get_by_role("row", name="PROFILE")
    expect(profiles).to_contain_text("25 %")
    expect(profiles).to_contain_text("name")
    expect(page.get_by_role("row", name="ORDER#…")).to_contain_text("OPEN")
    profiles.get_by_role("link").click()
    expect(page.get_by_role("status")).to_contain_text("2 items of 8 read")

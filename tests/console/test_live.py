"""The live view of a table in the browser."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Console
from tests.support.clients.clients import boto3_client
from tests.support.servers.server import Server

HOT = "a hot key"


def use(*partitions: tuple[int, float]) -> dict[str, Any]:
    """An event with these partitions: their numbers and the starts of their ranges."""
    shown = [{"number": number, "start": start} for number, start in partitions]
    resource = {"name": "", "partition_count": len(shown), "partitions": shown}
    return {"now_epoch_seconds": 7, "resources": [resource]}


@pytest.mark.usefixtures("songs_table")
def test_writes_are_seen_as_they_happen(console: Console, server: Server):
    page = console.open("table/songs/live")
    title = page.locator(".title-row").first
    expect(title).to_contain_text("items")
    before = title.inner_text()
    table = page.get_by_role("region", name="Table", exact=True)
    expect(table).to_contain_text("write units/s")
    with closing(boto3_client(server.endpoint)) as client:
        for number in range(50):
            item = {"artist": {"S": HOT}, "song": {"S": str(number)}, "label": {"S": "OLI"}}
            client.put_item(TableName="songs", Item=item)
    expect(table).to_contain_text(HOT)
    index = page.get_by_role("region", name="Index by-label", exact=True)
    expect(index).to_contain_text("up to date with the table")
    expect(index).to_contain_text("OLI")
    # The counts of the title follow, too.
    expect(title).not_to_have_text(before, timeout=10_000)


def test_a_split_is_found_between_two_events(console: Console):
    page = console.open("tables")
    found = page.evaluate(
        """([before, after]) =>
          import('/console/app/live.js').then((live) => live.splitsBetween(before, after))""",
        [use((1, 0), (2, 0.5)), use((1, 0), (3, 0.5), (4, 0.75))],
    )
    assert found == [{"at": 7, "resource": "", "parent": 2, "children": [3, 4]}]


def test_a_part_of_an_item_collection_has_a_visible_width(console: Console):
    page = console.open("tables")
    places = page.evaluate(
        """(partitions) =>
          import('/console/app/live.js').then((live) => live.placesOf(partitions))""",
        use((1, 0), (2, 0.5), (3, 0.5))["resources"][0]["partitions"],
    )
    assert places[0]["x"] == 0
    assert places[1]["width"] > 0
    assert places[2]["x"] == places[1]["x"] + places[1]["width"]
    assert round(places[2]["x"] + places[2]["width"]) == 1000

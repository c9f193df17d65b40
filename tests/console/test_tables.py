"""Tables are made, changed and deleted in the browser; statements are completed and run."""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Console, create_table
from tests.support.clients.clients import boto3_client
from tests.support.servers.server import Server


def described(server: Server, name: str) -> dict[str, Any]:
    with closing(boto3_client(server.endpoint)) as client:
        table: dict[str, Any] = client.describe_table(TableName=name)["Table"]
        return table


def shown_request(page: Page, operation: str) -> Any:
    return json.loads(page.get_by_role("region", name=f"{operation} as JSON").inner_text())


def test_a_table_is_made_changed_and_deleted(console: Console, server: Server):
    page = console.open("tables")
    page.get_by_role("link", name="Make a table").click()
    page.get_by_label("Name", exact=True).fill("films")
    page.get_by_label("Partition key", exact=True).fill("title")
    page.get_by_label("Sort key, if any").fill("year")
    page.get_by_label("Type of the sort key").select_option("N")
    page.get_by_role("button", name="Add an index").click()
    page.get_by_label("Name of the index").fill("by-year")
    page.get_by_label("Partition key", exact=True).nth(1).fill("year")
    page.get_by_label("Type of the partition key").nth(1).select_option("N")
    request = shown_request(page, "CreateTable")
    expect(page.get_by_role("region", name="AWS CLI")).to_contain_text("aws dynamodb create-table")
    page.get_by_role("button", name="Make the table").click()
    expect(page.get_by_role("row", name="by-year")).to_contain_text("ACTIVE")
    made = described(server, "films")
    assert made["KeySchema"] == request["KeySchema"]
    assert made["GlobalSecondaryIndexes"][0]["IndexName"] == "by-year"

    page.get_by_role("button", name="Add a global index").click()
    page.get_by_label("Name of the index").fill("by-studio")
    page.get_by_label("Partition key", exact=True).fill("studio")
    page.get_by_role("button", name="Add the index").click()
    expect(page.get_by_role("row", name="by-studio")).to_contain_text("ACTIVE")

    page = console.open("tables")
    # A finished backfill has no percentage.
    expect(page.get_by_role("row", name="films").get_by_text("by-studio")).to_have_text("by-studio")
    page.get_by_role("link", name="films", exact=True).click()
    page.get_by_role("link", name="Live").click()
    index = page.get_by_role("region", name="Index by-studio", exact=True)
    expect(index).to_contain_text("up to date with the table")
    expect(index).not_to_contain_text("BACKFILLING")
    page.get_by_role("link", name="Definition").click()
    page.get_by_role("button", name="Delete the table").click()
    last = page.get_by_role("dialog").get_by_role("button", name="Delete the table")
    expect(last).to_be_disabled()
    page.get_by_label("Type films to delete it").fill("films")
    last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Tables")
    expect(page.get_by_role("link", name="films", exact=True)).to_have_count(0)


def test_a_statement_is_completed_with_the_keyboard_and_run(console: Console, server: Server):
    with closing(boto3_client(server.endpoint)) as client:
        create_table(client, "planets", "name")
        mars = {"name": {"S": "Mars"}, "diameter": {"N": "6779"}}
        client.put_item(TableName="planets", Item=mars)
    page = console.open("partiql")
    text = page.get_by_label("Statement", exact=True).last
    text.press_sequentially("SELECT * FROM plan")
    page.get_by_role("button", name='"planets"').wait_for()
    text.press("Control+Space")
    expect(text).to_have_value('SELECT * FROM "planets"')
    text.press_sequentially(" WHERE ")
    # The attributes of the items follow, not only those of the key.
    expect(page.get_by_role("button", name='"name"')).to_be_visible()
    page.get_by_role("button", name='"diameter"').click()
    text.press_sequentially(' > 5 AND "name" = \'Mar')
    # Nothing completes a text.
    expect(page.locator(".suggestions button")).to_have_count(0)
    text.press_sequentially("s'")
    text.press("Control+Enter")
    expect(page.get_by_role("status")).to_contain_text("1 item,")
    expect(page.get_by_role("cell", name="Mars")).to_be_visible()
    text.fill("SELECT FROM")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("ValidationException")


@pytest.mark.usefixtures("songs_table")
def test_an_index_shows_its_cost_before_it_is_added(console: Console):
    page = console.open("table/songs/advice")
    finding = page.get_by_role("region", name="Partition key").get_by_role("listitem").first
    finding.locator("summary").click()
    expect(finding.get_by_role("link").first).to_have_attribute(
        "href", re.compile("https://docs.aws.amazon.com/amazondynamodb/")
    )
    page.get_by_role("link", name="Cost of an index").click()
    page.get_by_label("Partition key", exact=True).fill("label")
    page.get_by_role("button", name="Compute the cost").click()
    expect(page.get_by_role("region", name="Forecast")).to_contain_text("OLI has 100 %")
    page.get_by_role("link", name="Add this index").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Partition key", exact=True)).to_have_value("label")
    dialog.get_by_label("Sort key, if any").fill("song")
    dialog.get_by_role("link", name="Cost of this index").click()
    expect(page.get_by_role("region", name="Forecast")).to_contain_text("OLI has 100 %")
    expect(page.get_by_label("Sort key, if any")).to_have_value("song")


def test_the_definition_shows_the_change_of_another_client(console: Console, server: Server):
    with closing(boto3_client(server.endpoint)) as client:
        create_table(client, "towns", "town")
        page = console.open("table/towns/items")
        page.get_by_role("form", name="Read items").wait_for()
        client.update_table(
            TableName="towns",
            AttributeDefinitions=[{"AttributeName": "land", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[
                {
                    "Create": {
                        "IndexName": "by-land",
                        "KeySchema": [{"AttributeName": "land", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                }
            ],
        )
    page.get_by_role("link", name="Definition").click()
    expect(page.get_by_role("row", name="by-land")).to_contain_text("ACTIVE")

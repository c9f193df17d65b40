"""The sign-in, a read-only console, and separate tables of access keys."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.console.conftest import create_table, running_console
from tests.support.clients.clients import boto3_client
from tests.support.servers.server import running_server

SECRET = "0123456789abcdef"


def test_the_page_asks_for_the_secret_once(browser: Browser, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    with (
        running_server("--admin-port", "0", "--admin-secret-file", str(secret)) as server,
        running_console(browser, server) as console,
    ):
        page = console.open("tables")
        page.get_by_label("Secret").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("not the secret")
        page.get_by_label("Secret").fill(SECRET)
        page.keyboard.press("Enter")
        page.get_by_text("There are no tables yet").wait_for()
        page.reload()
        page.get_by_text("There are no tables yet").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Secret").wait_for()


def test_a_read_only_console_offers_no_changes(browser: Browser):
    with (
        running_server("--admin-port", "0", "--console", "read-only") as server,
        running_console(browser, server) as console,
    ):
        with closing(boto3_client(server.endpoint)) as client:
            create_table(client, "films", "title")
            client.put_item(TableName="films", Item={"title": {"S": "Persona"}})
        page = console.open("tables")
        page.get_by_role("link", name="films", exact=True).wait_for()
        expect(page.get_by_text("Make a table")).to_have_count(0)
        page = console.open("table/films/items")
        page.get_by_role("button", name="Open Persona").click()
        expect(page.get_by_label("DynamoDB JSON")).not_to_be_editable()
        for name in ("Save", "Delete", "New item", "Import"):
            expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)


def test_separate_tables_are_shown_by_access_key(browser: Browser):
    with (
        running_server("--admin-port", "0", "--compat", "dynamodb-local") as server,
        running_console(browser, server) as console,
    ):
        page = console.open("tables")
        page.get_by_text("There are no tables yet").wait_for()
        with closing(boto3_client(server.endpoint)) as client:
            create_table(client, "films", "title")
        page.reload()
        page.get_by_role("link", name="films", exact=True).click()
        page.get_by_text("No items").wait_for()

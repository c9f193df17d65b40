"""axe finds no violation of WCAG 2.2 AA on any view, in both themes and widths."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.console.conftest import Console

RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
}
VIEWS = {
    "tables": "tables",
    "new table": "new?like=songs",
    "items": "table/songs/items",
    "query": "table/songs/items?mode=query&filter=%5B%7B%22name%22%3A%22a%22%2C%22operator%22%3A"
    "%22%3D%22%2C%22type%22%3A%22S%22%2C%22text%22%3A%22%22%2C%22other%22%3A%22%22%7D%5D",
    "keys": "table/songs/keys",
    "live": "table/songs/live",
    "stream": "table/songs/stream",
    "definition": "table/songs/definition",
    "recovery": "table/songs/recovery",
    "advice": "table/songs/advice",
    "index cost": "table/songs/index-cost?partition=label",
    "requests": "requests",
    "time": "time",
    "PartiQL": "partiql?statement=SELECT%20%2A%20FROM%20%22songs%22",
}
# A text that these views show once they have their data. They never stop to load.
LOADED = {"live": "Partitions as a table", "stream": "inserted", "requests": "No requests yet"}
# Opens a dialog of the view.
DIALOGS = {"items": "Open", "definition": "Add a global index"}


def violations(page: Page) -> list[str]:
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
    ]


@pytest.fixture(scope="module", autouse=True)
def songs(songs_table: None) -> None:
    """A table for the views."""


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(view: str, console: Console, narrow_console: Console):
    for each in (console, narrow_console):
        page = each.open(VIEWS[view])
        if view in LOADED:
            page.get_by_text(LOADED[view]).first.wait_for()
        else:
            page.wait_for_load_state("networkidle")
        assert violations(page) == []
        # Only tables and code scroll sideways, never the page.
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if view in DIALOGS:
            page.get_by_role("button", name=DIALOGS[view]).first.click()
            page.get_by_role("dialog").wait_for()
            assert violations(page) == []
            page.keyboard.press("Escape")
            assert page.get_by_role("dialog").count() == 0


def test_axe_finds_an_image_without_text(console: Console):
    page = console.open("tables")
    page.evaluate("document.querySelector('main').append(new Image())")
    assert any("image-alt" in each for each in violations(page))

"""Tasks of a new user with the keyboard alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from time import time_ns

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Console
from tests.support.clients.clients import boto3_client
from tests.support.servers.server import Server

MOST_STEPS = 60

FOCUSED = """() => {
  const it = document.activeElement;
  return it.getAttribute('aria-label') || it.closest('label')?.innerText || it.innerText || '';
}"""


def focus(page: Page, name: str) -> None:
    """Press Tab until the element with this name has the focus."""
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED).strip().startswith(name):
            return
    pytest.fail(f"Tab does not reach {name}")


def open_view(page: Page, name: str) -> None:
    focus(page, "songs")
    page.keyboard.press("Enter")
    page.get_by_role("status").wait_for()
    focus(page, name)
    page.keyboard.press("Enter")


def open_queries(page: Page) -> None:
    focus(page, "songs")
    page.keyboard.press("Enter")
    page.get_by_role("status").wait_for()
    focus(page, "Scan")
    page.keyboard.press("ArrowLeft")


def query(page: Page, key: str, value: str) -> None:
    focus(page, f"{key} =")
    page.keyboard.type(value)
    page.keyboard.press("Enter")


def find_items(page: Page) -> None:
    open_queries(page)
    query(page, "artist", "Björk")
    expect(page.get_by_role("status")).to_contain_text("5 items of 5 read")
    # The explanation of the cost.
    focus(page, "0.5 capacity units")
    page.keyboard.press("Enter")
    expect(page.locator(".explanation ul")).to_be_visible()


def open_an_item_and_return(page: Page) -> None:
    find_items(page)
    focus(page, "Open Björk, 0")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def see_the_cost_of_an_index(page: Page) -> None:
    open_view(page, "Index cost")
    page.get_by_role("button", name="Compute the cost").wait_for()
    focus(page, "Partition key")
    page.keyboard.type("label")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Forecast")).to_contain_text("write units")


def see_whether_an_index_is_ready(page: Page) -> None:
    open_view(page, "Live")
    index = page.get_by_role("region", name="Index by-label", exact=True)
    expect(index).to_contain_text("up to date with the table")


def see_who_changed_an_item(page: Page) -> None:
    open_view(page, "Stream")
    focus(page, "Text in key or item")
    page.keyboard.type("björk")
    expect(page.get_by_role("listitem").first).to_contain_text("by a user")
    focus(page, page.locator("summary").first.inner_text().strip())
    page.keyboard.press("Enter")
    expect(page.get_by_role("listitem").first.get_by_role("row").first).to_be_visible()


def query_an_index(page: Page) -> None:
    open_queries(page)
    focus(page, "From")
    page.keyboard.press("ArrowDown")
    query(page, "label", "OLI")
    expect(page.get_by_role("status")).to_contain_text("5 items of")


def step_the_clock(page: Page) -> None:
    focus(page, "Time and faults")
    page.keyboard.press("Enter")
    clock = page.get_by_role("region", name="Clock")
    clock.get_by_text("UTC").wait_for()
    before = clock.locator("strong").inner_text()
    focus(page, "+ 1 minute")
    page.keyboard.press("Enter")
    expect(clock.locator("strong")).not_to_have_text(before)


TASKS: list[Callable[[Page], None]] = [
    open_an_item_and_return,
    query_an_index,
    see_the_cost_of_an_index,
    see_whether_an_index_is_ready,
    see_who_changed_an_item,
    step_the_clock,
]


@pytest.mark.usefixtures("songs_table")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_a_task_needs_no_mouse(task: Callable[[Page], None], console: Console, server: Server):
    # Earlier tests may have set the clock past the time for which changes are kept.
    item = {"artist": {"S": "Björk"}, "song": {"S": "0"}, "label": {"S": "OLI"}}
    with closing(boto3_client(server.endpoint)) as client:
        client.put_item(TableName="songs", Item=item | {"n": {"N": str(time_ns())}})
    page = console.open("tables")
    page.get_by_role("link", name="songs", exact=True).wait_for()
    task(page)
    assert console.reports == []


def test_the_first_tab_skips_to_the_content(console: Console):
    page = console.open("tables")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"

"""The nodes of a cluster in the browser."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Route, expect

from tests.console.conftest import Console
from tests.console.test_accessibility import violations


def node(name: str, **others: Any) -> dict[str, Any]:
    return {
        "name": name,
        "address": f"{name}.internal:8100",
        "version": "0.1.0",
        "is_home": False,
        "is_leaving": False,
        "missed_beats": 0,
        "tables": 0,
        **others,
    }


def test_nodes_are_shown_with_their_states(narrow_console: Console):
    page = narrow_console.page
    members = [node("a", is_home=True), node("b", missed_beats=1), node("c", tables=2)]
    state = {"node": "a", "home": "a", "epoch": 4, "members": members}

    def with_nodes(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json=response.json() | {"has_nodes": True})

    page.route("**/console/server", with_nodes)
    page.route("**/nodes", lambda route: route.fulfill(json=state))
    narrow_console.open("tables")
    page.get_by_role("link", name="Nodes").click()
    expect(page.get_by_role("status")).to_contain_text("a is the leader")
    expect(page.get_by_role("row", name="a OK leader")).to_be_visible()
    expect(page.get_by_role("row", name="b OK")).to_be_visible()
    expect(page.get_by_role("row", name="a OK")).to_contain_text("all other tables")
    expect(page.get_by_role("row", name="c OK")).to_contain_text("2 tables")
    members[1:] = [node("b", missed_beats=3), node("c", is_leaving=True)]
    expect(page.get_by_role("row", name="b problem")).to_contain_text("missed 3 beats")
    expect(page.get_by_role("row", name="c leaving")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_one_server_has_no_view_of_nodes(console: Console):
    page = console.open("tables")
    expect(page.get_by_role("link", name="Requests")).to_be_visible()
    expect(page.get_by_role("link", name="Nodes")).to_have_count(0)

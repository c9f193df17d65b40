"""Tables and items in the browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.conftest import Console, create_table
from tests.support.clients.clients import boto3_client
from tests.support.servers.server import Server

SCRIPT = '<img src=x onerror="document.title=`hacked`"><script>alert(1)</script>'
LONG_NUMBER = "0.12345678901234567890123456789012345678"


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Any]:
    with closing(boto3_client(server.endpoint)) as client:
        yield client


@pytest.fixture(scope="module", autouse=True)
def orders(client: Any) -> None:
    index = ("by-status", "status", "KEYS_ONLY")
    create_table(client, "orders", "customer", "order_id", index=index)
    for number in range(60):
        client.put_item(
            TableName="orders",
            Item={
                "customer": {"S": f"customer-{number % 3}"},
                "order_id": {"S": f"{number:03}"},
                "status": {"S": "OPEN" if number % 2 else "PAID"},
                "total": {"N": LONG_NUMBER},
                "note": {"S": SCRIPT},
            },
        )


def item(client: Any, order_id: str) -> dict[str, Any] | None:
    key = {"customer": {"S": f"customer-{int(order_id) % 3}"}, "order_id": {"S": order_id}}
    found: dict[str, Any] | None = client.get_item(TableName="orders", Key=key).get("Item")
    return found


def open_item(page: Page, order_id: str) -> None:
    page.get_by_label("customer =").fill(f"customer-{int(order_id) % 3}")
    page.get_by_label("Value of order_id").fill(order_id)
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name=f"Open customer-{int(order_id) % 3}, {order_id}").click()


def test_the_list_of_tables_leads_to_the_items_of_a_customer(console: Console):
    page = console.open("tables")
    row = page.get_by_role("row", name="orders")
    expect(row).to_contain_text("ACTIVE")
    expect(row).to_contain_text("60")
    expect(row).to_contain_text("by-status")
    page.get_by_role("link", name="orders", exact=True).click()
    page.get_by_role("radio", name="Query").check()
    page.get_by_label("customer =").fill("customer-1")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("status")).to_contain_text("20 items of 20 read")
    page.locator(".explanation > summary").click()
    expect(page.locator(".explanation")).to_contain_text("rounded to")
    # The address has the whole view.
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("20 items of 20 read")
    page.go_back()
    expect(page.get_by_role("status")).to_contain_text("50 items of 50 read")


def test_pages_follow_the_last_evaluated_key(console: Console):
    page = console.open("table/orders/items")
    expect(page.get_by_role("status")).to_contain_text("50 items")
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_role("status")).to_contain_text("10 items")
    page.get_by_role("button", name="Previous page").click()
    expect(page.get_by_role("status")).to_contain_text("50 items")


def test_a_filter_and_an_index_are_applied(console: Console):
    page = console.open("table/orders/items?mode=query")
    page.get_by_label("From").select_option("by-status")
    page.get_by_label("status =").fill("OPEN")
    page.get_by_role("button", name="Add a filter").click()
    page.get_by_label("Attribute").fill("order_id")
    page.get_by_label("Condition").select_option("between")
    page.get_by_label("Value", exact=True).fill("010")
    page.get_by_label("Upper bound").fill("019")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("status")).to_contain_text("5 items of 30 read")


def test_values_are_shown_and_never_run(console: Console):
    page = console.open("table/orders/items")
    expect(page.get_by_text(SCRIPT).first).to_be_visible()
    assert page.locator("td img").count() == 0
    assert page.title() == "items · orders · dynactor"


def test_an_item_is_saved_only_as_it_was_shown(console: Console, client: Any):
    page = console.open("table/orders/items?mode=query")
    open_item(page, "007")
    text = page.get_by_label("DynamoDB JSON")
    shown = text.input_value()
    # A number keeps all of its digits.
    assert LONG_NUMBER in shown
    text.fill(shown.replace('"OPEN"', '"SHIPPED"'))
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    changed = item(client, "007")
    assert changed is not None
    assert changed["status"] == {"S": "SHIPPED"}
    assert changed["total"] == {"N": LONG_NUMBER}

    open_item(page, "007")
    expect(text).to_have_value(shown.replace('"OPEN"', '"SHIPPED"'))
    # Another client changes the item.
    client.put_item(TableName="orders", Item={**changed, "status": {"S": "LOST"}})
    text.fill(shown)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was written")
    expect(page.get_by_role("alert")).to_contain_text("LOST")
    assert item(client, "007") == {**changed, "status": {"S": "LOST"}}


def test_attributes_that_others_have_added_are_kept(console: Console, client: Any):
    key = {"customer": {"S": "many"}, "order_id": {"S": "0"}}
    client.put_item(
        TableName="orders", Item=key | {f"n{number:03}": {"N": "1"} for number in range(150)}
    )

    def set_to(name: str, value: str) -> None:
        client.update_item(
            TableName="orders",
            Key=key,
            UpdateExpression=f"SET {name} = :value",
            ExpressionAttributeValues={":value": {"N": value}},
        )

    page = console.open("table/orders/items?mode=query&partition=%5B%22many%22%5D")
    page.get_by_role("button", name="Open many, 0").click()
    text = page.get_by_label("DynamoDB JSON")
    expect(text).to_have_value(re.compile("n149"))
    set_to("added", "1")
    text.fill(text.input_value().replace('"n149": {"N": "1"}', '"n149": {"N": "2"}'))
    save = page.get_by_role("button", name="Save", exact=True)
    save.click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was written")
    expect(page.get_by_role("row", name="added")).to_be_visible()

    # Another client writes between the last read of the console and its write.
    between: list[tuple[str, str]] = [("n149", "7")]

    def write_first(route: Route) -> None:
        if between and route.request.headers["x-amz-target"].endswith("UpdateItem"):
            set_to(*between.pop())
        route.continue_()

    page.route("**/console/dynamodb", write_first)
    page.get_by_role("button", name="Show the item as it is now").click()
    expect(text).to_have_value(re.compile("added"))
    text.fill(text.input_value().replace('"n149": {"N": "1"}', '"n149": {"N": "2"}'))
    save.click()
    expect(page.get_by_role("row", name="n149")).to_contain_text("7")
    between.append(("late", "1"))
    page.get_by_role("button", name="Show the item as it is now").click()
    expect(text).to_have_value(re.compile('"n149": {"N": "7"}'))
    changed = text.input_value().replace('"n149": {"N": "7"}', '"n149": {"N": "2"}')
    text.fill(changed.replace('"n148": {"N": "1"},', ""))
    save.click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    stored = client.get_item(TableName="orders", Key=key)["Item"]
    assert (stored["n149"], stored["added"], stored["late"]) == ({"N": "2"}, {"N": "1"}, {"N": "1"})
    assert "n148" not in stored


def test_items_are_deleted_after_a_question(console: Console, client: Any):
    page = console.open("table/orders/items?mode=query")
    open_item(page, "008")
    page.get_by_role("button", name="Delete", exact=True).click()
    assert item(client, "008") is not None
    page.get_by_role("button", name="Delete the item").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert item(client, "008") is None
    page.get_by_label("Value of order_id").fill("")
    page.get_by_role("button", name="Run").click()
    for order_id in ("011", "014"):
        page.get_by_label(f"Choose customer-2, {order_id}").check()
    page.get_by_role("button", name="Delete 2 items").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 items deleted")
    assert item(client, "011") is None
    assert item(client, "014") is None
    assert item(client, "017") is not None


def test_items_are_imported_and_counted(console: Console, client: Any, tmp_path: Path):
    page = console.open("table/orders/items?mode=query&partition=%5B%22imported%22%5D")
    file = tmp_path / "items.csv"
    rows = "".join(f'imported,{number:03},"a ""quoted"", text",1.50\r\n' for number in range(30))
    file.write_text(f"customer,order_id,note,total\r\n{rows}", newline="")
    page.get_by_role("button", name="Import").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("File").set_input_files(file)
    expect(dialog.get_by_role("status")).to_have_text("30 items")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog.get_by_role("status")).to_contain_text("30 of 30 items imported")
    dialog.get_by_role("button", name="Close", exact=True).last.click()
    expect(page.get_by_role("status")).to_contain_text("30 items of 30 read")
    page.get_by_role("button", name="Count all").click()
    expect(page.get_by_role("note")).to_contain_text("30 items, for 0.5 units")
    key = {"customer": {"S": "imported"}, "order_id": {"S": "007"}}
    stored = client.get_item(TableName="orders", Key=key)["Item"]
    assert stored == key | {"note": {"S": 'a "quoted", text'}, "total": {"S": "1.50"}}


def test_an_import_continues_with_items_that_were_not_processed(
    console: Console, client: Any, tmp_path: Path
):
    page = console.open("table/orders/items?mode=query&partition=%5B%22continued%22%5D")
    file = tmp_path / "items.csv"
    file.write_text(
        "customer,order_id,note\n"
        + "".join(f"continued,{number:03},{'x' * 20_000}\n" for number in range(30))
    )
    batches: list[int] = []

    def answer(route: Route) -> None:
        body = route.request.post_data_json
        if "RequestItems" not in body:
            route.continue_()
            return
        puts = body["RequestItems"]["orders"]
        batches.append(len(json.dumps(puts)))
        if len(batches) == 1:
            # The first item is left, the others are written.
            answered = route.fetch(post_data=json.dumps({"RequestItems": {"orders": puts[1:]}}))
            route.fulfill(response=answered, json={"UnprocessedItems": {"orders": puts[:1]}})
        elif len(batches) == 2:
            route.fulfill(status=500, json={"message": "a failure"})
        else:
            route.continue_()

    page.route("**/console/dynamodb", answer)
    page.get_by_role("button", name="Import").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("File").set_input_files(file)
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("a failure")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog.get_by_role("status")).to_contain_text("30 of 30 items imported")
    # A request of the admin port has at most 1 MB, whatever the items need in UTF-8.
    assert max(batches) < 2**20 / 3
    stored = client.query(
        TableName="orders",
        KeyConditionExpression="customer = :customer",
        ExpressionAttributeValues={":customer": {"S": "continued"}},
    )
    assert stored["Count"] == 30


def test_a_deletion_ends_when_its_view_is_left(console: Console, client: Any):
    page = console.open("table/orders/items")
    for order_id in ("030", "033"):
        page.get_by_label(f"Choose customer-0, {order_id}").check()
    page.get_by_role("button", name="Delete 2 items").click()
    held: list[Route] = []
    page.route(
        "**/console/dynamodb",
        lambda route: (
            held.append(route)
            if route.request.headers["x-amz-target"].endswith("DeleteItem")
            else route.continue_()
        ),
    )
    with page.expect_request("**/console/dynamodb"):
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.evaluate("location.hash = '#/tables'")
    page.get_by_role("row", name="orders").wait_for()
    with page.expect_response("**/console/dynamodb"):
        held[0].continue_()
    page.get_by_role("link", name="PartiQL").click()
    page.get_by_role("heading", name="PartiQL").wait_for()
    assert len(held) == 1
    assert item(client, "033") is not None

"""Changes in the browser: the tail of a stream, and what the clock and faults cause."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from playwright.sync_api import Page, Route, expect

from tests.console.conftest import STREAM, Console, create_table
from tests.support.clients.clients import boto3_client
from tests.support.servers.admin import ServerClock
from tests.support.servers.server import Server

DAY_SECONDS = 86_400


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Any]:
    with closing(boto3_client(server.endpoint)) as client:
        create_table(client, "sessions", "session", StreamSpecification=STREAM)
        client.update_time_to_live(
            TableName="sessions",
            TimeToLiveSpecification={"AttributeName": "until", "Enabled": True},
        )
        yield client


def test_a_change_arrives_with_the_item_before_and_after(console: Console, client: Any):
    page = console.open("table/sessions/stream")
    client.put_item(TableName="sessions", Item={"session": {"S": "first"}, "n": {"N": "1"}})
    client.put_item(TableName="sessions", Item={"session": {"S": "first"}, "n": {"N": "2"}})
    line = page.get_by_role("listitem").filter(has_text="modified")
    line.locator("summary").click()
    cells = line.get_by_role("row", name="n", exact=False).get_by_role("cell")
    expect(cells.nth(0)).to_contain_text("1")
    expect(cells.nth(1)).to_contain_text("2")
    expect(line).to_contain_text("by a user")
    page.get_by_role("combobox", name="Change").select_option("REMOVE")
    expect(page.get_by_role("status")).to_contain_text("0 changes")


def answer_badly(page: Page, operation: str, error: str) -> None:
    """Answer an operation with an error, until the route is removed."""

    def answer(route: Route) -> None:
        if route.request.headers["x-amz-target"].endswith(operation):
            route.fulfill(status=400, json={"__type": f"x#{error}", "message": error})
        else:
            route.fallback()

    page.route("**/console/dynamodb", answer)


def test_a_tail_continues_after_its_last_change_when_its_iterators_expire(
    console: Console, client: Any
):
    create_table(client, "tailed", "key", StreamSpecification=STREAM)
    client.put_item(TableName="tailed", Item={"key": {"S": "earlier"}})
    page = console.open("table/tailed/stream")
    shown = page.get_by_role("status")
    expect(shown).to_contain_text("1 change,")
    page.get_by_label("Start").select_option("LATEST")
    expect(shown).to_contain_text("0 changes")
    client.put_item(TableName="tailed", Item={"key": {"S": "first"}})
    expect(shown).to_contain_text("1 change,")
    answer_badly(page, "GetRecords", "ExpiredIteratorException")
    client.put_item(TableName="tailed", Item={"key": {"S": "second"}})
    for _ in range(2):
        # The page asks for a new iterator after the change.
        page.wait_for_event("request", lambda each: "GetRecords" in str(each.headers))
    page.unroute("**/console/dynamodb")
    expect(shown).to_contain_text("2 changes")
    expect(page.get_by_role("listitem").filter(has_text="second")).to_have_count(1)


def test_a_form_stays_when_its_view_is_not_read_again(console: Console, client: Any):
    create_table(client, "kept", "key")
    client.update_continuous_backups(
        TableName="kept",
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )
    page = console.open("table/kept/recovery")
    name = page.get_by_role("form", name="Restore").get_by_label("Name of the new table")
    name.fill("kept-before")
    answer_badly(page, "DescribeContinuousBackups", "InternalServerError")
    # The view is read again every 5 seconds.
    expect(page.get_by_role("alert")).to_contain_text("InternalServerError", timeout=20_000)
    expect(name).to_have_value("kept-before")


def test_a_deletion_is_found_behind_many_later_changes(
    console: Console, client: Any, server: Server
):
    create_table(client, "logins", "login", StreamSpecification=STREAM)
    key = {"login": {"S": "gone"}}
    client.put_item(TableName="logins", Item=key | {"email": {"S": "ada@example.org"}})
    client.delete_item(TableName="logins", Key=key)
    ServerClock(server).step(10)
    for start in range(0, 550, 25):
        puts = [
            {"PutRequest": {"Item": {"login": {"S": str(number)}}}}
            for number in range(start, start + 25)
        ]
        client.batch_write_item(RequestItems={"logins": puts})
    page = console.open("table/logins/stream")
    expect(page.get_by_role("status")).to_contain_text("500 changes")
    page.get_by_label("Text in key or item").fill("ADA@example")
    page.get_by_role("combobox", name="Change").select_option("REMOVE")
    expect(page.get_by_role("status")).to_contain_text("1 change,")
    expect(page.get_by_role("listitem").filter(has_text="removed")).to_contain_text("gone")


def test_the_clock_makes_an_item_expire(console: Console, client: Any, server: Server):
    until = str(int(ServerClock(server).now()) + DAY_SECONDS // 2)
    client.put_item(TableName="sessions", Item={"session": {"S": "old"}, "until": {"N": until}})
    page = console.open("time")
    before = page.get_by_role("region", name="Clock").inner_text()
    page.get_by_role("button", name="+ 1 day").click()
    expect(page.get_by_role("region", name="Clock")).not_to_have_text(before)
    page = console.open("table/sessions/stream")
    page.get_by_label("Made by").select_option("expiry")
    line = page.get_by_role("listitem").filter(has_text="removed")
    expect(line).to_contain_text("old")
    expect(line).to_contain_text("time to live")


def test_a_table_is_restored_to_a_second(console: Console, client: Any, server: Server):
    page = console.open("table/sessions/recovery")
    page.get_by_role("button", name="Switch it on").click()
    page.get_by_role("dialog").get_by_role("button", name="Send").click()
    form = page.get_by_role("form", name="Restore")
    expect(form).to_contain_text("the latest time")
    clock = ServerClock(server)
    started_at = int(clock.now())
    key = {"session": {"S": "restored"}}
    for number in range(3):
        client.put_item(TableName="sessions", Item=key | {"n": {"N": str(number)}})
        clock.step(10)

    def number_in(table: str) -> str:
        expect(page.locator(".title-row").first).to_contain_text("ACTIVE")
        item = client.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]
        number: str = item["n"]["N"]
        return number

    page = console.open(f"table/sessions/recovery?at={started_at + 14}")
    slider = form.get_by_role("slider", name="Time")
    shown = form.locator("strong")
    first = shown.inner_text()
    slider.press("ArrowLeft")
    expect(shown).not_to_have_text(first)
    form.get_by_role("button", name="1 second").first.click()
    form.get_by_label("Name of the new table").fill("sessions-before")
    form.get_by_role("button", name="Restore to a new table").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sessions-before")
    assert number_in("sessions-before") == "1"

    page = console.open("table/sessions/recovery?at=yesterday")
    expect(form).to_contain_text("the latest time")
    typed = form.get_by_label("Time in UTC")
    restore = form.get_by_role("button", name="Restore to a new table")
    typed.fill("2001-01-01 00:00:00")
    expect(restore).to_be_disabled()
    form.get_by_role("button", name="Latest").click()
    expect(restore).to_be_enabled()
    expect(typed).to_have_value("")
    typed.fill(datetime.fromtimestamp(started_at + 2, UTC).strftime("%Y-%m-%d %H:%M:%S"))
    restore.click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text(re.compile(r"sessions-\d{8}T\d{6}"))
    assert number_in(heading.inner_text()) == "0"


def test_faults_are_switched_on_and_off(console: Console, client: Any):
    page = console.open("time")
    page.get_by_label("Operation").fill("GetItem")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("row", name="throttling error: GetItem")).to_be_visible()
    read = {"TableName": "sessions", "Key": {"session": {"S": "none"}}}
    with pytest.raises(ClientError, match="Throttling"):
        client.get_item(**read)
    # The console's own requests get no faults.
    status = page.evaluate(
        """(read) => import('/console/app/api.js').then((api) => api.dynamodb('GetItem', read))
          .then((answer) => answer.data)""",
        read,
    )
    assert status == {}
    page.get_by_role("button", name="Remove throttling error").click()
    expect(page.get_by_text("No faults are injected")).to_be_visible()
    client.get_item(**read)


def test_a_snapshot_restores_the_data(console: Console, client: Any):
    page = console.open("time")
    page.get_by_label("Name", exact=True).fill("before")
    page.get_by_role("button", name="Make a snapshot").click()
    page.get_by_role("button", name="Restore before").wait_for()
    client.put_item(TableName="sessions", Item={"session": {"S": "later"}})
    page.get_by_role("button", name="Restore before").click()
    page.get_by_role("button", name="Replace all data").click()
    page.get_by_text("The data is that of before").wait_for()
    assert "Item" not in client.get_item(TableName="sessions", Key={"session": {"S": "later"}})


def test_requests_appear_with_their_cost(console: Console, client: Any):
    page = console.open("requests?table=sessions")
    page.get_by_text("No requests yet").wait_for()
    client.put_item(TableName="sessions", Item={"session": {"S": "costly"}})
    row = page.get_by_role("row", name="PutItem")
    expect(row).to_contain_text("sessions")
    expect(row.get_by_role("cell").nth(4)).to_have_text("1")

"""A server with data, and pages of its console in Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.support.clients.clients import boto3_client
from tests.support.servers.admin import admin_port
from tests.support.servers.server import Server, running_server

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
_DEADLINE_MILLISECONDS = 20_000
STREAM: Final = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium has no sandbox for root, and the pages are ours.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    options = ("--admin-port", "0", "--virtual-clock", "2026-11-23T12:00:00Z", "--allow-faults")
    with running_server(*options) as server:
        yield server


class Console:
    """A page of the console; whatever the browser reports on it is a failure."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self.server = server
        self.reports: list[str] = []
        page.set_default_timeout(_DEADLINE_MILLISECONDS)
        page.on("pageerror", lambda error: self.reports.append(str(error)))
        page.on("console", self._report)

    def open(self, path: str) -> Page:
        """Open a view by its address."""
        self.page.goto("about:blank")
        self.page.goto(f"http://localhost:{admin_port(self.server)}/#/{path}")
        self.page.get_by_role("heading", level=1).wait_for()
        return self.page

    def _report(self, message: ConsoleMessage) -> None:
        # Chromium reports each answer of status 400 or higher; tests cause some.
        if "Failed to load resource" not in message.text:
            self.reports.append(message.text)


@contextmanager
def running_console(browser: Browser, server: Server, **options: object) -> Iterator[Console]:
    """A page of a server's console. Its end fails if the browser has reported something."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})  # type: ignore[arg-type]
    console = Console(context.new_page(), server)
    yield console
    context.close()
    assert console.reports == []


@pytest.fixture
def console(browser: Browser, server: Server) -> Iterator[Console]:
    with running_console(browser, server) as console:
        yield console


@pytest.fixture
def narrow_console(browser: Browser, server: Server) -> Iterator[Console]:
    with running_console(
        browser, server, viewport={"width": 380, "height": 800}, color_scheme="dark"
    ) as console:
        yield console


def create_table(
    client: Any, name: str, *keys: str, index: tuple[str, str, str] | None = None, **others: Any
) -> None:
    """Create a table whose keys are strings; ``index`` is a name, a key and a projection."""
    names = [*keys, *([] if index is None else [index[1]])]
    if index is not None:
        others["GlobalSecondaryIndexes"] = [
            {
                "IndexName": index[0],
                "KeySchema": [{"AttributeName": index[1], "KeyType": "HASH"}],
                "Projection": {"ProjectionType": index[2]},
            }
        ]
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in names],
        KeySchema=[
            {"AttributeName": each, "KeyType": kind}
            for each, kind in zip(keys, ("HASH", "RANGE"), strict=False)
        ],
        **others,
    )


@pytest.fixture(scope="session")
def songs_table(server: Server) -> None:
    """A table with an index, a stream and a few items."""
    with closing(boto3_client(server.endpoint)) as client:
        create_table(
            client,
            "songs",
            "artist",
            "song",
            index=("by-label", "label", "ALL"),
            StreamSpecification=STREAM,
        )
        for number in range(5):
            item = {"artist": {"S": "Björk"}, "song": {"S": str(number)}, "label": {"S": "OLI"}}
            client.put_item(TableName="songs", Item=item)

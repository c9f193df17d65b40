"""Measures the memory of pages that stay open for an hour, and of their server.

``python -m tests.console.open_pages --minutes 60``. A client writes to the table that pages
show. Each minute, the garbage of each page is collected, and its heap and DOM nodes are counted.
The end compares the means of two sixths of the time, the third and the last, because the lists of
the pages and of the server fill at first. The data of a server use memory too, so the server is
compared with another one that gets the same writes and has no pages.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from contextlib import closing, contextmanager
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import psutil
from playwright.sync_api import sync_playwright

from tests.console.conftest import CHROMIUM, STREAM, create_table
from tests.support.clients.clients import boto3_client
from tests.support.servers.admin import admin_port
from tests.support.servers.server import Server, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import CDPSession

_PATHS: Final = ("tables", "table/songs/live", "table/songs/stream", "requests", "nodes")
_SERVER, _OTHER = "server", "server without pages"
_MEGABYTE: Final = 1_000_000
_KEYS: Final = 500
# Differences below this may be caches, or the moment of the measurement.
_MOST_GROWTH_BYTES: Final = 1_000_000
_MOST_SERVER_GROWTH_BYTES: Final = 10_000_000


def main() -> None:
    arguments = _parsed()
    rate = arguments.writes_per_second
    with (
        running_server("--admin-port", "0") as server,
        running_server() as other,
        _writing(server, rate),
        _writing(other, rate),
    ):
        samples = _sampled(server, other, arguments.minutes)
    sys.exit(_report(samples))


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--writes-per-second", type=int, default=20)
    return parser.parse_args()


@contextmanager
def _writing(server: Server, writes_per_second: int) -> Iterator[None]:
    """Overwrite and delete the same items, at about this rate."""
    ended = threading.Event()
    with closing(boto3_client(server.endpoint)) as client:
        create_table(
            client,
            "songs",
            "artist",
            index=("by-label", "label", "ALL"),
            StreamSpecification=STREAM,
        )

        def write() -> None:
            number = 0
            while not ended.wait(1 / writes_per_second):
                number += 1
                key = {"artist": {"S": f"artist {number % _KEYS}"}}
                if number % 5:
                    item = key | {"label": {"S": str(number % 7)}, "n": {"N": str(number)}}
                    client.put_item(TableName="songs", Item=item)
                else:
                    client.delete_item(TableName="songs", Key=key)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            yield
        finally:
            ended.set()
            writer.join()


def _sampled(server: Server, other: Server, minutes: int) -> dict[str, list[tuple[float, float]]]:
    """By page, and for the servers: the bytes and the DOM nodes of each minute."""
    samples: dict[str, list[tuple[float, float]]] = {}
    processes = {
        name: psutil.Process(each.process.pid)
        for name, each in ((_SERVER, server), (_OTHER, other))
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        pages = [(path, _opened(browser, server, path)) for path in _PATHS]
        began = time.monotonic()
        for minute in range(1, minutes + 1):
            # The events of Playwright are handled meanwhile.
            pages[0][1][0].wait_for_timeout(1_000 * (began + 60 * minute - time.monotonic()))
            for path, (page, session) in pages:
                # Chromium slows the timers of a page that is not in front.
                page.bring_to_front()
                samples.setdefault(path, []).append(_measured(session))
            for name, process in processes.items():
                samples.setdefault(name, []).append((process.memory_full_info().uss, 0))
            shown = (f"{name} {each[-1][0] / _MEGABYTE:.1f}" for name, each in samples.items())
            print(f"minute {minute}, MB:", ", ".join(shown), flush=True)
        browser.close()
    return samples


def _opened(browser: Any, server: Server, path: str) -> tuple[Any, CDPSession]:
    # A window of its own, so the page is visible.
    page = browser.new_context().new_page()
    page.goto(f"http://localhost:{admin_port(server)}/#/{path}")
    page.get_by_role("heading", level=1).wait_for()
    return page, page.context.new_cdp_session(page)


def _measured(session: CDPSession) -> tuple[float, float]:
    session.send("HeapProfiler.collectGarbage")
    counted = session.send("Memory.getDOMCounters")
    return session.send("Runtime.getHeapUsage")["usedSize"], counted["nodes"]


def _report(samples: dict[str, list[tuple[float, float]]]) -> int:
    """Print the comparison; return 1 if something has grown."""
    growth_bytes = {}
    print(f"{'':22}{'first MB':>10}{'last MB':>10}{'first nodes':>13}{'last nodes':>12}")
    for name, taken in samples.items():
        part = max(len(taken) // 6, 1)
        first, last = (
            [fmean(values) for values in zip(*some, strict=True)]
            for some in (taken[2 * part : 3 * part] or taken[:1], taken[-part:])
        )
        growth_bytes[name] = last[0] - first[0]
        print(
            f"{name:22}{first[0] / _MEGABYTE:10.2f}{last[0] / _MEGABYTE:10.2f}"
            f"{first[1]:13.0f}{last[1]:12.0f}"
        )
    growth_bytes[_SERVER] -= growth_bytes.pop(_OTHER)
    has_grown = growth_bytes.pop(_SERVER) > _MOST_SERVER_GROWTH_BYTES or any(
        growth > _MOST_GROWTH_BYTES for growth in growth_bytes.values()
    )
    print("Something has grown." if has_grown else "Nothing has grown.")
    return int(has_grown)


if __name__ == "__main__":
    main()

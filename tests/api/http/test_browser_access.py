"""Which Host headers the server accepts, and what pages of other origins may read."""

from __future__ import annotations

import pytest

from dynactor.api.http.browser_access import Access


@pytest.mark.parametrize(
    "host",
    [
        "",
        "localhost",
        "LOCALHOST:8000",
        "localhost.:8000",
        "db.localhost:8000",
        "127.0.0.1",
        "127.0.0.1:8000",
        "192.168.0.7:8000",
        "[::1]",
        "[::1]:8000",
        "db.test:1",
    ],
)
def test_addresses_localhost_and_configured_names_are_served(host: str):
    assert Access(host_names=frozenset({"db.test"})).allows_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "localhost.example.com",
        "127.0.0.1.nip.io",
        "notlocalhost",
        "[",
        ":8000",
        "0x7f000001",
        "[::1].example.com",
        "[::1].example.com:8000",
        "[::1]example.com",
        "[::1]:8000.example.com",
        "[::1",
        "x[::1]",
        "[[::1]]",
        "[localhost].example.com",
        "127.0.0.1:8000.example.com",
        "localhost:example.com",
        "localhost:8000:8000",
    ],
)
def test_other_host_names_are_refused(host: str):
    assert not Access(host_names=frozenset({"db.test"})).allows_host(host)


def test_without_a_list_every_name_is_served():
    assert Access(host_names=None).allows_host("example.com")


def test_a_page_of_a_configured_origin_may_read_explanations():
    access = Access(origins=frozenset({"https://app.example.com"}))
    headers = access.cross_origin_headers("https://app.example.com")
    exposed = headers["Access-Control-Expose-Headers"].split(", ")
    assert {"X-Dynactor-Explanation", "X-Dynactor-Access-Explanation"} < set(exposed)
    assert access.cross_origin_headers("https://other.example.com") == {}

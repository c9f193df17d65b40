"""Every route of the admin port, asked by every kind of caller."""

from __future__ import annotations

import importlib
import pkgutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

import dynactor.api.admin
import dynactor.api.console
from dynactor.api.admin_api.callers import CallerRules, Level
from dynactor.api.admin_port.listener import Administered, serving_admin
from dynactor.api.http.browser_access import Access
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import listen
from dynactor.api.tls.certificate import BadCertificate, ServerCertificate
from tests.support.databases.databases import running_database
from tests.support.servers.certificates import Authority, certificate_for_tests, trusting
from tests.support.servers.console import token_of_page

SECRET = "0123456789abcdef"
READ_SECRET = "fedcba9876543210"
CHANGE = {"X-Dynactor-Admin": "1"}
REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
# Paths that any caller may read.
PUBLIC = {"/health", "/ready"}
# Paths that a browser needs before its user has signed in.
OF_BROWSERS = {"/", "/console/sign-in", "/console/"}


def routes() -> set[str]:
    """All paths: the constants named ``…_PATH`` in the modules of the port and the console."""
    found: set[str] = set()
    for package in (dynactor.api.admin, dynactor.api.console):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, constant in vars(importlib.import_module(module.name)).items():
                if name.endswith("_PATH") and isinstance(constant, str):
                    found.add(constant)
    return found


class Asker(NamedTuple):
    """A kind of caller: its secret, its certificate, and the level that it should have."""

    level: Level
    secret: str = ""
    certificate: str = ""


ASKERS = {
    "nobody": Asker(Level.NOTHING),
    "a wrong secret": Asker(Level.NOTHING, "0" * 16),
    "the secret for reading": Asker(Level.READ, READ_SECRET),
    "a certificate": Asker(Level.READ, certificate="reports"),
    "the secret": Asker(Level.FULL, SECRET),
    "a certificate with full access": Asker(Level.FULL, certificate="ops"),
    "a certificate, and the secret": Asker(Level.FULL, SECRET, "reports"),
}


@asynccontextmanager
async def admin_server(authority: Authority) -> AsyncIterator[str]:
    files = certificate_for_tests().files
    certificate = ServerCertificate(files.certificate, files.key, authority.file)
    rules = CallerRules(SECRET, READ_SECRET, has_certificates=True, full_names=frozenset({"ops"}))
    async with running_database() as database:
        administered = Administered(
            database._store.figures, Protocol(database, ()), callers=rules, console="full"
        )
        with listen("127.0.0.1", 0) as listener:
            async with serving_admin(administered, Access(), listener, certificate) as address:
                yield address


@asynccontextmanager
async def session_of(
    asker: Asker, address: str, authority: Authority
) -> AsyncIterator[aiohttp.ClientSession]:
    context = trusting(certificate_for_tests().files.authority)
    if asker.certificate:
        context.load_cert_chain(*authority.issue(asker.certificate))
    headers = CHANGE | ({"Authorization": f"Bearer {asker.secret}"} if asker.secret else {})
    connector = aiohttp.TCPConnector(ssl=context)
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(
        address, connector=connector, headers=headers, cookie_jar=jar
    ) as session:
        yield session


@pytest.mark.parametrize("kind", ASKERS)
async def test_every_route_asks_for_a_proof(kind: str, tmp_path: Path):
    asker, authority = ASKERS[kind], Authority(tmp_path)
    refused: dict[tuple[str, str], bool] = {}
    async with (
        admin_server(authority) as address,
        session_of(asker, address, authority) as session,
    ):
        for path in sorted((routes() | {"/nothing"}) - OF_BROWSERS):
            for method in ("GET", "POST", "PUT", "DELETE"):
                async with session.request(method, path) as response:
                    # Some routes answer 403 without an option of the server.
                    may_only_read = "This caller may only read" in await response.text()
                    refused[method, path] = response.status == 401 or may_only_read
    assert len(refused) > 60
    for (method, path), was_refused in refused.items():
        needed = Level.READ if method == "GET" else Level.FULL
        if path.startswith("/console/"):
            # These need the token of a page, which none of these callers sends.
            assert was_refused, (method, path)
        elif path in PUBLIC and method == "GET":
            assert not was_refused, path
        else:
            assert was_refused == (asker.level < needed), (method, path)


@pytest.mark.parametrize(
    ("kind", "signs_in_with", "level"),
    [
        ("nobody", "0" * 16, Level.NOTHING),
        ("nobody", READ_SECRET, Level.READ),
        ("nobody", SECRET, Level.FULL),
        ("a certificate", "", Level.READ),
        ("a certificate", SECRET, Level.FULL),
        ("a certificate with full access", "", Level.FULL),
    ],
)
async def test_a_page_may_do_what_its_caller_may_do(
    kind: str, signs_in_with: str, level: Level, tmp_path: Path
):
    authority = Authority(tmp_path)
    async with (
        admin_server(authority) as address,
        session_of(ASKERS[kind], address, authority) as session,
    ):
        if signs_in_with:
            body = {"secret": signs_in_with}
            async with session.post("/console/sign-in", json=body) as response:
                assert (response.status == 204) == (level > Level.NOTHING)
        headers = {"X-Dynactor-Console": await token_of_page(session)}
        async with session.get("/console/server", headers=headers) as response:
            if level is Level.NOTHING:
                assert response.status == 401
            else:
                assert (await response.json())["is_read_only"] == (level is Level.READ)
        for operation, needed in (("ListTables", Level.READ), ("CreateTable", Level.FULL)):
            target = {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
            async with session.post(
                "/console/dynamodb", json={}, headers=headers | target
            ) as response:
                assert (response.status in REFUSED) == (level < needed)
        async with session.post("/reset", headers=headers) as response:
            assert (response.status in REFUSED) == (level < Level.FULL)


async def test_a_certificate_of_another_authority_is_refused(tmp_path: Path):
    other = Authority(tmp_path / "other")
    async with (
        admin_server(Authority(tmp_path)) as address,
        session_of(ASKERS["a certificate with full access"], address, other) as session,
    ):
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            async with session.get("/health"):
                pass


def test_a_file_without_authorities_is_refused(tmp_path: Path):
    files, empty = certificate_for_tests().files, tmp_path / "empty.pem"
    empty.write_text("")
    with pytest.raises(BadCertificate, match=r"The certificate authorities .* can't be used"):
        ServerCertificate(files.certificate, files.key, empty)

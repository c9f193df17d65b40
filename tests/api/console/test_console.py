"""The console over HTTP: who may use it, and what its requests answer."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import closing

import pytest
from multidict import CIMultiDict

from dynactor.api.admin_api.callers import CallerRules
from dynactor.api.admin_api.nodes_messages import NodesState
from dynactor.api.console.files import PageFiles
from dynactor.api.console.sign_in import SESSION_SECONDS, SignIn
from dynactor.api.keys.signature import AccessKey, Signatures
from tests.support.clients.clients import TARGET_PREFIX
from tests.support.servers.console import CHANGE, TABLE, opened_page, token_of_page

SECRET = "0123456789abcdef"
ITEM = {
    "pk": {"S": "<script>alert(1)</script>"},
    "n": {"N": "0.12345678901234567890123456789012345678"},
}
FIRST_PAGE_BYTES = 150_000


async def test_the_page_runs_no_code_of_others():
    async with opened_page() as page:
        _, text, response = await page.ask("GET", "/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in text
    assert "style=" not in text


async def test_the_page_performs_operations_with_its_token_only():
    async with opened_page() as page:
        assert (await page.perform("CreateTable", TABLE))[0] == 200
        put = {"TableName": "Thread", "Item": ITEM}
        assert (await page.perform("PutItem", put))[0] == 200
        read = {"TableName": "Thread", "Key": {"pk": ITEM["pk"]}}
        # A number keeps all its 38 digits.
        assert (await page.perform("GetItem", read)) == (200, {"Item": ITEM})
        assert (await page.perform("GetItem", read, X_Dynactor_Console="0" * 64))[0] == 401
        assert (await page.perform("GetItem", read, X_Dynactor_Admin=""))[0] == 403
        assert (await page.perform("GetItem", read, Origin="http://evil.example"))[0] == 403
        assert (await page.perform("GetItem", read, Host="evil.example"))[0] == 403
        status, error = await page.perform("GetItem", {"TableName": "None", "Key": ITEM})
        assert (status, error["__type"].partition("#")[2]) == (400, "ResourceNotFoundException")


async def test_a_request_has_its_explanation():
    async with opened_page() as page:
        await page.perform("CreateTable", TABLE)
        headers = {"X_Amz_Target": "DynamoDB_20120810.Scan", "X_Dynactor_Explain": "true"}
        status, _, response = await page.ask(
            "POST", "/console/dynamodb", {"TableName": "Thread"}, **headers
        )
    assert status == 200
    assert '"Operation":"Scan"' in response.headers["X-Dynactor-Explanation"]


async def test_one_request_lists_the_tables():
    async with opened_page() as page:
        await page.perform("CreateTable", TABLE)
        await page.perform("PutItem", {"TableName": "Thread", "Item": ITEM})
        status, listed, _ = await page.ask("GET", "/console/tables")
        assert (await page.ask("GET", "/console/tables", X_Dynactor_Console=""))[0] == 401
    (shown,) = listed["tables"]
    assert status == 200
    assert shown["name"] == "Thread"
    assert shown["item_count"] == 1
    assert shown["write_units"] == 1


async def test_a_read_only_console_changes_nothing():
    async with opened_page(console="read-only") as page:
        assert (await page.perform("CreateTable", TABLE))[0] == 403
        assert (await page.perform("ListTables", {})) == (200, {"TableNames": []})
        for statement in ('DELETE FROM "T"', "", ' -- SELECT\nDELETE FROM "T"'):
            assert (await page.perform("ExecuteStatement", {"Statement": statement}))[0] == 403
        select = {"Statement": ' select * FROM "Thread"'}
        assert (await page.perform("ExecuteStatement", select))[0] == 400
        _, facts, _ = await page.ask("GET", "/console/server")
    assert facts["is_read_only"]


async def test_a_second_operation_does_not_evade_the_check_for_reads():
    async with opened_page(console="read-only") as page:
        headers = CIMultiDict(CHANGE | {"X-Dynactor-Console": page.token})
        for operation in ("ListTables", "CreateTable"):
            headers.add("X-Amz-Target", TARGET_PREFIX + operation)
        path = "/console/dynamodb"
        async with page.session.post(path, json=TABLE, headers=headers) as response:
            assert "TableDescription" not in await response.text()
        assert await page.perform("ListTables", {}) == (200, {"TableNames": []})


async def test_a_token_of_other_bytes_is_refused():
    async with opened_page() as page:
        host, port = page.session._base_url.host, page.session._base_url.port
        reader, writer = await asyncio.open_connection(host, port)
        with closing(writer):
            writer.write(b"GET /console/tables HTTP/1.1\r\nHost: localhost\r\n")
            writer.write(b"X-Dynactor-Console: \xff\r\n\r\n")
            assert (await reader.readline()).split()[1] == b"401"


class Leader:
    """A node that leads, with the members that an admin port reads."""

    leadership = "open"
    state = NodesState("a", "a", 1, [])


async def test_the_page_knows_whether_there_are_nodes():
    for node, has_nodes in ((None, False), (Leader(), True)):
        async with opened_page(node=node) as page:
            _, facts, _ = await page.ask("GET", "/console/server")
            assert facts["has_nodes"] == has_nodes
            assert (await page.ask("GET", "/nodes"))[0] == (200 if has_nodes else 404)


async def test_without_console_its_paths_do_not_exist():
    async with opened_page(console=None) as page:
        for path in ("/", "/console/tables", "/console/app/main.js"):
            assert (await page.ask("GET", path))[0] == 404


async def test_a_secret_has_to_be_given_before_the_page_shows_anything():
    async with opened_page(secret=SECRET) as page:
        assert page.token == ""
        assert (await page.perform("ListTables", {}))[0] == 401
        wrong, _, _ = await page.ask("POST", "/console/sign-in", {"secret": "0" * 16})
        assert wrong == 401
        done, _, response = await page.ask("POST", "/console/sign-in", {"secret": SECRET})
        assert done == 204
        (cookie,) = response.cookies.values()
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"
        assert cookie["max-age"] == str(SESSION_SECONDS)
        # The cookie alone, which a browser sends by itself, performs nothing.
        assert (await page.perform("ListTables", {}))[0] == 401
        page.token = await token_of_page(page.session)
        assert (await page.perform("ListTables", {}))[0] == 200
        assert (await page.ask("POST", "/console/sign-out"))[0] == 204
        assert (await page.perform("ListTables", {}))[0] == 401


async def test_a_server_with_access_keys_shows_nothing_without_a_secret():
    signatures = Signatures((AccessKey("key", "secret"),))
    async with opened_page(signatures) as page:
        status, refusal, _ = await page.ask("GET", "/")
        assert (status, "--admin-secret-file" in refusal["message"]) == (403, True)
        assert (await page.perform("ListTables", {}))[0] == 403
    async with opened_page(signatures, secret=SECRET) as page:
        await page.ask("POST", "/console/sign-in", {"secret": SECRET})
        page.token = await token_of_page(page.session)
        assert (await page.perform("ListTables", {}))[0] == 200


@pytest.mark.parametrize(("peer", "is_refused"), [("127.0.0.1", False), ("192.0.2.7", True)])
def test_other_machines_need_a_secret(peer: str, is_refused: bool):
    assert (SignIn(CallerRules(), checks_keys=False).refusal(peer) is not None) == is_refused
    assert SignIn(CallerRules(SECRET), checks_keys=False).refusal(peer) is None


async def test_files_are_sent_once():
    async with opened_page() as page:
        status, _, first = await page.ask("GET", "/console/app/main.js")
        assert status == 200
        tag = first.headers["ETag"]
        assert (await page.ask("GET", "/console/app/main.js", If_None_Match=tag))[0] == 304
        for path in ("/console/app/nothing.js", "/console/app/index.html", "/console/routes.py"):
            assert (await page.ask("GET", path))[0] != 200


def test_the_first_page_is_small():
    files = PageFiles()._read().values()
    assert sum(len(gzip.compress(file.body)) for file in files) < FIRST_PAGE_BYTES

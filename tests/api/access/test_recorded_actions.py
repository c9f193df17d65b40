"""With policies that are only observed, the server records the actions of each caller."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from random import Random

import pytest

from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.ask import Ask
from dynactor.api.access.facts import ActionFacts, DataFacts, RequestFacts
from dynactor.api.access.identities import Role
from dynactor.api.access.observed_denials import ObservedDenials
from dynactor.api.access.recorded_actions import MOST_PAIRS, RecordedActions
from dynactor.api.admin_api.access_messages import AccessAnswer, AccessWarning
from dynactor.api.admin_port.listener import Administered, serving_admin
from dynactor.api.advice.access_findings import access_findings
from dynactor.api.clients.admin_client import AdminClient
from dynactor.api.clients.server_address import ServerAddress
from dynactor.api.commands.policy import suggest
from dynactor.api.http.browser_access import Access
from dynactor.api.http.protocol import Protocol, Request
from dynactor.api.http.server import listen
from dynactor.model.access.policy import parse_policy
from dynactor.model.access.suggestion import RecordedAction, suggested
from tests.support.access.callers import DENIED, Callers
from tests.support.access.deciding import ALICE, policy
from tests.support.access.tenants import ARN, CREATE, TenantRequests, key
from tests.support.databases.databases import running_database
from tests.support.servers.admin import ask as ask_admin
from tests.support.stores.store import memory_store

ANN = "arn:aws:iam::000000000000:user/ann"
FACTS = ActionFacts(RequestFacts(ALICE, Request("", "", "", "", "", "", "", b"")))


class KeyFacts(DataFacts):
    """Facts with these leading keys."""

    def __init__(self, *keys: str) -> None:
        super().__init__(FACTS.request, None, {})
        self._keys = keys

    def partition_key_values(self, position: int) -> tuple[str, ...]:
        return self._keys if position == 0 else ()


def on_table(name: str, *keys: str) -> Ask:
    facts = KeyFacts(*keys) if keys else FACTS
    return Ask("dynamodb:GetItem", f"arn:aws:dynamodb:r:a:table/{name}", facts)


async def test_the_suggested_policy_allows_the_recorded_requests():
    random = Random(6)
    async with running_database() as database:
        callers = Callers(database)
        callers.add("root", policy({}))
        callers.add("ann")
        observing = AccessControl(callers.registry, ObservedDenials())
        callers.check_with(observing)
        assert (await callers.call("root", "CreateTable", CREATE)).status == 200
        drawn = [TenantRequests("ann", random).draw() for _ in range(60)]
        # Without the table, no leading keys are known.
        requests = [one for one in drawn if one.operation != "DeleteTable"]
        for one in requests:
            assert (await callers.call("ann", one.operation, one.request)).error != DENIED
        assert observing.recorded is not None
        suggestion = suggested(observing.recorded.actions(ANN))
        callers.add("ann", parse_policy(json.dumps(suggestion.policy), "suggested"))
        callers.check_with(AccessControl(callers.registry))
        for one in requests:
            assert (await callers.call("ann", one.operation, one.request)).error != DENIED
        other = {"TableName": "Notes", "Key": key("zoe", "1")}
        assert (await callers.call("ann", "GetItem", other)).error == DENIED
        assert (await callers.call("ann", "DeleteTable", {"TableName": "Notes"})).error == DENIED


def test_few_leading_keys_are_recorded():
    recorded = RecordedActions()
    for number in range(10):
        recorded.note(ANN, on_table("few", f"key {number}", "key 0"), 0)
        recorded.note(ANN, on_table("none", "key"), 0)
    for number in range(11):
        recorded.note(ANN, on_table("many", f"key {number}"), 0)
    recorded.note(ANN, on_table("none"), 0)
    recorded.note(ANN, on_table("none", "key"), 0)
    recorded.note(ANN, on_table("long", "key" * 100), 0)
    keys = {one.resource.rpartition("/")[2]: one.leading_keys for one in recorded.actions(ANN, 0)}
    few = frozenset(f"key {number}" for number in range(10))
    assert keys == {"few": few, "many": None, "none": None, "long": None}


def test_actions_are_forgotten_after_an_hour():
    recorded = RecordedActions()
    recorded.note(ANN, on_table("old"), 0)
    recorded.note(ANN, on_table("used"), 0)
    recorded.note(ANN, on_table("used"), 1_800)
    assert len(recorded.actions(ANN, 3_600)) == 2
    assert [one.resource[-4:] for one in recorded.actions(ANN, 3_601)] == ["used"]
    assert recorded.actions("arn:aws:iam::000000000000:user/bob", 0) == []


def test_many_resources_become_patterns():
    recorded = RecordedActions()
    for number in range(MOST_PAIRS):
        recorded.note(ANN, on_table(f"table{number}"), 0)
    for name in ("other*", "another"):
        recorded.note(ANN, on_table(name, "key"), 0)
    pattern = "arn:aws:dynamodb:r:a:table/*"
    keys = frozenset({"key"})
    (found,) = [one for one in recorded.actions(ANN, 0) if one.is_pattern]
    assert found == RecordedAction("dynamodb:GetItem", pattern, keys, is_pattern=True)
    for number in range(3 * MOST_PAIRS):
        resource = f"arn:aws:dynamodb:r:a:$kind{number}/x"
        recorded.note(ANN, Ask("dynamodb:GetItem", resource, FACTS), 0)
    actions = recorded.actions(ANN, 0)
    assert len(actions) == 2 * MOST_PAIRS + 1
    assert {"*", "arn:aws:dynamodb:r:a:${$}kind0/*"} < {one.resource for one in actions}
    # Once the old resources are forgotten, new ones have room again.
    recorded.note(ANN, on_table("new"), 4_000)
    assert [one.resource for one in recorded.actions(ANN, 4_000)] == [on_table("new").resource]


def test_malformed_resources_are_left_out():
    recorded = RecordedActions()
    recorded.note(ANN, Ask("dynamodb:GetItem", "no ARN", FACTS), 0)
    recorded.note(ANN, on_table("t" * 2_048), 0)
    recorded.note(ANN, Ask("dynamodb:DescribeLimits", "*", FACTS), 0)
    assert [one.resource for one in recorded.actions(ANN, 0)] == ["*"]


async def test_the_command_prints_the_policy_of_a_user(capsys: pytest.CaptureFixture[str]):
    async with memory_store() as store, running_database(store) as database:
        callers = Callers(database)
        callers.add("ann")
        access_control = AccessControl(callers.registry, ObservedDenials())
        callers.check_with(access_control)
        await callers.call("ann", "ListTables", {})
        await callers.call("ann", "CreateTable", CREATE)
        await callers.call("ann", "GetItem", {"TableName": "Notes", "Key": key("ann", "1")})
        protocol = Protocol(database, (), access_control=access_control)
        administered = Administered(store.figures, protocol)
        with listen("127.0.0.1", 0) as admin:
            port = admin.getsockname()[1]
            async with serving_admin(administered, Access(), admin) as endpoint:
                server = ServerAddress(admin_endpoint=endpoint)
                capsys.readouterr()
                await asyncio.to_thread(suggest, "ann", server=server)
                shown = capsys.readouterr()
                with pytest.raises(SystemExit) as ended:
                    await asyncio.to_thread(suggest, "role/reporting", server=server)
                assert ended.value.code == 2
                assert "no requests of role/reporting in the last hour" in capsys.readouterr().err
                answers = [
                    await asyncio.to_thread(ask_admin, port, path)
                    for path in ("/access/other", "/access/actions")
                ]
                assert [one.status for one in answers] == [404, 400]
                posted = await asyncio.to_thread(ask_admin, port, "/access/actions", method="POST")
                assert posted.status == 405
    statements = json.loads(shown.out)["Statement"]
    assert [(one["Action"], one["Resource"]) for one in statements] == [
        (["dynamodb:ListTables"], ["*"]),
        (["dynamodb:CreateTable"], [ARN]),
        (["dynamodb:GetItem"], [ARN]),
    ]
    keys = statements[2]["Condition"]["ForAllValues:StringEquals"]["dynamodb:LeadingKeys"]
    assert keys == ["ann"]
    reason = "The Resource of dynamodb:ListTables is *, because it has no resources"
    assert shown.err == f"note: {reason}\n"


async def test_risky_policies_are_advised_on():
    async with memory_store() as store, running_database(store) as database:
        callers = Callers(database)
        everything = policy({})
        callers.add("ann", everything)
        callers.add("bob", policy({"Action": "dynamodb:GetItem"}))
        callers.roles["admin"] = Role(
            "admin", policy({"Principal": "*"}, kind="trust"), [everything]
        )
        protocol = Protocol(
            database, (), access_control=AccessControl(callers.registry, ObservedDenials())
        )
        with listen("127.0.0.1", 0) as admin:
            async with serving_admin(
                Administered(store.figures, protocol), Access(), admin
            ) as endpoint:
                client = AdminClient(endpoint)
                # An earlier version has no such path.
                ask = partial(client.ask, if_missing=AccessAnswer())
                missing = await asyncio.to_thread(ask, "GET", "/missing", AccessAnswer)
                assert missing == AccessAnswer()
                answer = await asyncio.to_thread(client.ask, "GET", "/access", AccessAnswer)
                protocol.access_control = AccessControl(callers.registry)
                enforced = await asyncio.to_thread(client.ask, "GET", "/access", AccessAnswer)
                protocol.access_control = None
                none = await asyncio.to_thread(client.ask, "GET", "/access", AccessAnswer)
    assert (answer.mode, enforced.mode, none) == ("observe", "enforce", AccessAnswer())
    observed, risky = access_findings(answer)
    assert "no policy allows are executed" in observed.text
    assert risky.text.startswith("Policy of user/ann, role/admin: ")
    assert risky.text.endswith(": line 1 allows all actions on all tables")
    assert risky.figures == {"principals": ["user/ann", "role/admin"]}
    assert len(list(access_findings(enforced))) == 1
    many = tuple(AccessWarning(f"arn:aws:iam::0:user/u{n}", "allows") for n in range(7))
    (of_many,) = access_findings(AccessAnswer("enforce", many))
    names = "user/u0, user/u1, user/u2, user/u3, user/u4 and 2 more"
    assert of_many.text == f"Policy of {names}: allows"


async def test_a_server_that_does_not_observe_says_how_to_start_it(
    capsys: pytest.CaptureFixture[str],
):
    async with memory_store() as store, running_database(store) as database:
        administered = Administered(store.figures, Protocol(database, ()))
        with listen("127.0.0.1", 0) as admin:
            async with serving_admin(administered, Access(), admin) as endpoint:
                with pytest.raises(SystemExit):
                    await asyncio.to_thread(
                        suggest, "ann", server=ServerAddress(admin_endpoint=endpoint)
                    )
    assert "start it with --policy-dir and --policy-mode observe" in capsys.readouterr().err

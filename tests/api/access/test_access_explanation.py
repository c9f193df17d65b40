"""The header that explains the decisions of policies on a request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.access_explanation import AccessExplanation, header_text
from dynactor.api.access.observed_denials import ObservedDenials
from dynactor.api.answers.explain import EXPLANATION_BYTES
from dynactor.model.access.explanation import Decision, StatementOutcome
from dynactor.model.access.policy import parse_policy
from tests.support.access.callers import ACCOUNT, DENIED, Callers, Reply
from tests.support.access.deciding import policy
from tests.support.access.tenants import ARN, CREATE, POLICY, item, key
from tests.support.databases.databases import running_database

ASK = (("x-dynactor-explain-access", "true"),)
ANN = f"arn:aws:iam::{ACCOUNT}:user/ann"
STATEMENTS = [
    {**POLICY, "Effect": "Allow", "Sid": "Own"},
    {"Effect": "Deny", "Action": "dynamodb:Delete*", "Resource": "*", "Sid": "Keep"},
]
TENANTS = parse_policy(json.dumps({"Version": "2012-10-17", "Statement": STATEMENTS}), "tenants")
GET = {"TableName": "Notes", "Key": key("ann", "1")}


@asynccontextmanager
async def calling(**control: Any) -> AsyncIterator[Callers]:
    """A table, its owner root, and ann, who may reach her own items."""
    async with running_database() as database:
        callers = Callers(database)
        callers.check_with(AccessControl(callers.registry, **{"explains": True, **control}))
        callers.add("root", policy({}))
        callers.add("ann", TENANTS, tags={"tenant": "ann"})
        assert (await callers.call("root", "CreateTable", CREATE)).status == 200
        yield callers


async def ask(callers: Callers, operation: str, request: Any) -> tuple[Reply, dict[str, Any]]:
    reply = await callers.call("ann", operation, request, headers=ASK)
    assert reply.explanation is not None
    return reply, json.loads(reply.explanation)


async def test_an_allowed_request_is_explained():
    async with calling() as callers:
        reply, explanation = await ask(callers, "GetItem", GET)
    assert reply.status == 200
    assert explanation == {
        "Decision": "allow",
        "Principal": ANN,
        "ActionCount": 1,
        "Actions": [
            {
                "Decision": "allow",
                "Action": "dynamodb:GetItem",
                "Resource": ARN,
                "Statements": [
                    {"Statement": "tenants: Own", "Effect": "Allow"},
                    {"Statement": "tenants: Keep", "Effect": "Deny", "Reason": "another Action"},
                ],
            }
        ],
    }


async def test_a_denied_request_is_explained_with_the_error():
    async with calling() as callers:
        get = {**GET, "Key": key("bob", "1")}
        writes = [{"Put": {"TableName": "Notes", "Item": item("ann", "1")}}]
        writes += [{"Put": {"TableName": "Notes", "Item": item("bob", str(n))}} for n in range(20)]
        one, explanation = await ask(callers, "GetItem", get)
        many, of_many = await ask(callers, "TransactWriteItems", {"TransactItems": writes})
    assert (one.error, many.error) == (DENIED, DENIED)
    (action,) = explanation["Actions"]
    assert (explanation["Decision"], action["Decision"]) == ("deny", "deny")
    assert action["Message"] == one.message
    assert action["Statements"][0] == {
        "Statement": "tenants: Own",
        "Effect": "Allow",
        "Reason": "ForAllValues:StringEquals dynamodb:LeadingKeys is false",
    }
    # The first action is allowed, so the explanation starts with the second one.
    assert (of_many["Decision"], of_many["ActionCount"]) == ("deny", 21)
    assert of_many["Actions"][0]["Message"] == many.message


async def test_statements_of_resource_policies_are_explained():
    async with calling() as callers:
        statement = {"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "*"}
        attached = {
            "ResourceArn": ARN,
            "Policy": json.dumps({"Statement": [{**statement, "Action": "dynamodb:GetItem"}]}),
        }
        assert (await callers.call("root", "PutResourcePolicy", attached)).status == 200
        _, explanation = await ask(callers, "GetItem", GET)
    (action,) = explanation["Actions"]
    assert action["Statements"][-1] == {"Statement": "resource policy: line 1", "Effect": "Deny"}
    assert action["Message"].endswith("with an explicit deny in a resource-based policy")


async def test_a_request_that_is_only_observed_says_so():
    async with calling(observed=ObservedDenials()) as callers:
        reply, explanation = await ask(callers, "GetItem", {**GET, "Key": key("bob", "1")})
    assert reply.status == 200
    assert (explanation["Decision"], explanation["ExecutedAnyway"]) == ("deny", True)


async def test_only_requests_that_ask_are_explained_and_only_if_the_server_allows_it():
    async with calling() as callers:
        assert (await callers.call("ann", "GetItem", GET)).explanation is None
        no = (("x-dynactor-explain-access", "false"),)
        assert (await callers.call("ann", "GetItem", GET, headers=no)).explanation is None
    async with calling(explains=False) as callers:
        assert (await callers.call("ann", "GetItem", GET, headers=ASK)).explanation is None
        malformed = {**GET, "TableName": "?"}
        refused = await callers.call("ann", "GetItem", malformed, headers=ASK)
    async with calling() as callers:
        assert await callers.call("ann", "GetItem", malformed, headers=ASK) == refused


async def test_a_malformed_request_gets_the_same_error_with_and_without_an_explanation():
    tables = {"Notes": {"Keys": [key("bob", "1")]}, "arn:?": {"Keys": [key("ann", "1")]}}
    async with calling() as callers:
        denied = await callers.call("ann", "BatchGetItem", {"RequestItems": tables})
        asked = await callers.call("ann", "BatchGetItem", {"RequestItems": tables}, headers=ASK)
    assert denied.error == DENIED
    assert asked == denied


TEXTS = st.text(max_size=60) | st.builds(str.__mul__, st.text(min_size=1), st.just(200))
OUTCOMES = st.builds(StatementOutcome, TEXTS, st.sampled_from(["Allow", "Deny"]), TEXTS)
DECISIONS = st.builds(
    Decision,
    st.sampled_from(["allow", "deny"]),
    TEXTS,
    TEXTS,
    TEXTS,
    st.lists(OUTCOMES, max_size=30).map(tuple),
)


@given(st.lists(DECISIONS, max_size=10))
def test_the_header_is_a_line_of_ascii_of_limited_length(decisions: list[Decision]):
    explanation = AccessExplanation("deny", ANN, 100, actions=tuple(decisions))
    text = header_text(explanation)
    assert text.isascii()
    assert text.isprintable()
    assert len(text) <= EXPLANATION_BYTES
    shown = json.loads(text)
    assert (shown["Decision"], shown["ActionCount"]) == ("deny", 100)

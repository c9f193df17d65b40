"""Policies that are only observed: denied requests are executed, and logged once a minute."""

from __future__ import annotations

import structlog

from dynactor.api.access.access_control import AccessControl
from dynactor.api.access.observed_denials import ObservedDenials
from tests.support.access.callers import Callers
from tests.support.access.deciding import policy
from tests.support.access.tenants import CREATE, key
from tests.support.databases.databases import running_database


async def test_denied_requests_are_executed_and_logged():
    async with running_database() as database:
        callers = Callers(database)
        callers.check_with(AccessControl(callers.registry, ObservedDenials()))
        callers.add("ann", policy({"Action": "dynamodb:CreateTable"}))
        request = {"TableName": "Notes", "Key": key("ann", "1")}
        with structlog.testing.capture_logs() as lines:
            assert (await callers.call("ann", "CreateTable", CREATE)).status == 200
            for _ in range(3):
                assert (await callers.call("ann", "GetItem", request)).status == 200
        (line,) = [line for line in lines if line["event"] == "action_not_allowed"]
        assert (line["access_key_id"], line["action"]) == ("AKIAann", "dynamodb:GetItem")
        assert line["message"].startswith("User: arn:aws:iam::000000000000:user/ann is not auth")


def test_long_names_of_resources_are_cut():
    observed = ObservedDenials()
    with structlog.testing.capture_logs() as lines:
        for end in ("a", "b"):
            observed.note("AKIA", "dynamodb:PartiQLSelect", "x" * 10_000 + end, "y" * 10_000, 0)
    (line,) = lines
    assert (len(line["resource"]), len(line["message"])) == (2_048, 4_096)


def test_a_combination_is_logged_once_a_minute():
    observed = ObservedDenials()
    with structlog.testing.capture_logs() as lines:
        for second in (0, 1, 59, 60, 61, 130):
            observed.note("AKIA", "dynamodb:GetItem", "*", "denied", second)
        observed.note("AKIA", "dynamodb:PutItem", "*", "denied", 130)
    assert len(lines) == 4

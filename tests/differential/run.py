"""Sends the same requests in the same order to two servers and compares their answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tests.differential.differences.compare import Difference, spoils_state
from tests.differential.peers.normalize import normalize
from tests.differential.peers.peer import Peer
from tests.differential.requests.request import (
    AFTER_STATEMENTS,
    AFTER_UPDATE,
    WITHOUT_ACTION,
    Request,
    Scenario,
    may_write,
    request,
    without_action,
)


class Outcome(NamedTuple):
    """The outcome of one request: DynamoDB Local's answer, and the difference if there is one."""

    scenario: Scenario
    request: Request
    local: dict[str, Any]
    difference: Difference | None
    # The servers may have different data now, so the setup was sent to both again.
    spoiled: bool
    accepted: bool


def run(scenarios: Iterable[Scenario], ours: Peer, local: Peer) -> Iterator[Outcome]:
    """Run the scenarios. After a write that may have made the data differ, send the setup again."""
    for scenario in scenarios:
        send_all(scenario.setup, ours, local)
        for sent in _with_reads(scenario):
            our_form = normalize(sent, ours.send(sent))
            local_form = normalize(sent, local.send(sent))
            difference = None
            if our_form != local_form:
                difference = Difference(scenario.name, sent, our_form, local_form)
            spoiled = _may_have_written_some(local_form) or (
                difference is not None and spoils_state(difference)
            )
            yield Outcome(
                scenario, sent, local_form, difference, spoiled, our_form["status"] == 200
            )
            if spoiled:
                send_all(scenario.setup, ours, local)
        send_all(scenario.teardown, ours, local)


def _may_have_written_some(local: dict[str, Any]) -> bool:
    """Whether DynamoDB Local may have written some statements of a refused batch."""
    return local.get("message") == "Provided list of item keys contains duplicates"


def _with_reads(scenario: Scenario) -> Iterator[Request]:
    """The scenario's requests, with a read after each update, statement and transaction.

    The answer to a write may not show its effect. The read finds a difference right after the write
    that caused it, not many requests later.
    """
    for sent in scenario.requests:
        yield sent
        if may_write(sent):
            yield request("Scan", {"TableName": scenario.name}, *sent.faults, AFTER_STATEMENTS)
        if sent.operation != "UpdateItem":
            continue
        body = json.loads(sent.body)
        if isinstance(body.get("Key"), dict) and isinstance(body.get("TableName"), str):
            read = {"TableName": body["TableName"], "Key": body["Key"]}
            added = (AFTER_UPDATE, WITHOUT_ACTION) if without_action(body) else (AFTER_UPDATE,)
            yield request("GetItem", read, *sent.faults, *added)


def send_all(requests: Iterable[Request], *peers: Peer) -> None:
    """Send requests whose answers are ignored."""
    for sent in requests:
        for peer in peers:
            peer.send(sent)

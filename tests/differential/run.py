"""Send the same requests in the same order to two servers and compare their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tests.differential.compare import Difference, spoils_state
from tests.differential.normalise import normalise
from tests.differential.peer import Peer
from tests.differential.request import Request, Scenario


class Outcome(NamedTuple):
    """What came of one request: DynamoDB Local's answer, and how ours differs from it."""

    scenario: Scenario
    request: Request
    local: dict[str, Any]
    difference: Difference | None
    # The two may hold different data now; both were set up anew.
    spoiled: bool
    accepted: bool


def run(scenarios: Iterable[Scenario], ours: Peer, local: Peer) -> Iterator[Outcome]:
    """Run the scenarios; after a write that drove the two servers apart, set up anew."""
    for scenario in scenarios:
        send_all(scenario.setup, ours, local)
        for request in scenario.requests:
            our_form = normalise(request, ours.send(request))
            local_form = normalise(request, local.send(request))
            difference = None
            if our_form != local_form:
                difference = Difference(scenario.name, request, our_form, local_form)
            spoiled = difference is not None and spoils_state(difference)
            yield Outcome(
                scenario, request, local_form, difference, spoiled, our_form["status"] == 200
            )
            if spoiled:
                send_all(scenario.setup, ours, local)
        send_all(scenario.teardown, ours, local)


def send_all(requests: Iterable[Request], *peers: Peer) -> None:
    """Send requests whose answers don't matter."""
    for request in requests:
        for peer in peers:
            peer.send(request)

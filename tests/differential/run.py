"""Send the same requests in the same order to two servers and compare their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.differential.compare import Difference, compare, spoils_state
from tests.differential.peer import Peer
from tests.differential.request import Request, Scenario


class Outcome(NamedTuple):
    """What came of one request: a difference, or None."""

    request: Request
    difference: Difference | None
    status: int


def run(scenarios: Iterable[Scenario], ours: Peer, local: Peer) -> Iterator[Outcome]:
    """Run the scenarios; after a write that drove the two servers apart, set up anew."""
    for scenario in scenarios:
        _send_all(scenario.setup, ours, local)
        for request in scenario.requests:
            our_answer, local_answer = ours.send(request), local.send(request)
            difference = compare(scenario.name, request, our_answer, local_answer)
            yield Outcome(request, difference, our_answer.status)
            if difference is not None and spoils_state(difference):
                _send_all(scenario.setup, ours, local)
        _send_all(scenario.teardown, ours, local)


def _send_all(requests: Iterable[Request], *peers: Peer) -> None:
    for request in requests:
        for peer in peers:
            peer.send(request)

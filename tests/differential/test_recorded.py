"""This server answers like DynamoDB Local, or differs in a decided way."""

from __future__ import annotations

from contextlib import closing

from tests.differential import recording
from tests.differential.differences.compare import Difference
from tests.differential.differences.kinds import kind_of
from tests.differential.peers.normalize import normalize
from tests.differential.peers.peer import Peer
from tests.differential.run import send_all
from tests.support.servers.server import running_server


def test_answers_differ_from_recorded_ones_in_known_ways_alone() -> None:
    unknown = []
    # A separate server, because ListTables shows every table.
    with running_server() as server, closing(Peer(server.endpoint)) as peer:
        for recorded in recording.load():
            send_all(recorded.setup, peer)
            for request, local in recorded.exchanges:
                ours = normalize(request, peer.send(request))
                difference = Difference(recorded.name, request, ours, local)
                if ours != local and kind_of(difference) is None:
                    unknown.append(f"{difference.signature}\n   {request.body:.1000}")
            send_all(recorded.teardown, peer)
    assert not unknown, "\n".join(unknown)

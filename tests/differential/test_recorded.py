"""Compares this server's answers with recorded answers of DynamoDB Local."""

from __future__ import annotations

from contextlib import closing

from tests.differential import recording
from tests.differential.differences.compare import Difference
from tests.differential.differences.kinds import kind_of
from tests.differential.peers.normalize import normalize
from tests.differential.peers.peer import Peer
from tests.differential.run import send_all
from tests.support.servers.server import running_server


def test_answers_equal_the_recorded_ones_except_for_known_kinds_of_differences() -> None:
    unknown = []
    # Start a separate server, because ListTables would also return the tables of other tests.
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

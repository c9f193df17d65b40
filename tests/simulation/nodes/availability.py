"""Checks how long clients are refused, and why.

A table may be closed for a moment while it moves. While a leader lives, no table is refused for
longer than ``MOST_CLOSED_SECONDS``. A node answers that it has found no home only if the leader or
PostgreSQL was away shortly before. A move takes some thirty statements, one after another. So a
PostgreSQL whose answers to a node take three of ten seconds counts as away, and then a table may be
closed for ``MOST_CLOSED_SLOWLY_SECONDS``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from dynactor.api.http.protocol import Request
from dynactor.api.nodes.forwarding import HOME_SECONDS
from dynactor.api.nodes.request_tables import find_tables
from dynactor.storage.postgresql.sql import LEADER_SLOT
from tests.simulation.nodes.fake_connections import Network
from tests.simulation.nodes.real_nodes import Cluster, Process
from tests.support.clients.wire import Answer

MOST_CLOSED_SECONDS: Final = 12.0
MOST_CLOSED_SLOWLY_SECONDS: Final = 30.0
_NO_HOME: Final = "no node that could execute this"


class _State(NamedTuple):
    """Which nodes can work since a time; ``leader`` is the node that leads, if it can work."""

    since: float
    leader: str | None
    suspended: frozenset[str]
    cuts: frozenset[tuple[str, str]]
    without_store: frozenset[str]
    slow: frozenset[str]

    def serves(self, asked: str) -> bool:
        """Whether there is a leader, and the asked node can reach it and PostgreSQL."""
        return (
            self.leader is not None
            and asked not in self.suspended
            and asked not in self.without_store
            and not any({asked, self.leader} == set(cut) for cut in self.cuts)
        )


class Availability:
    """The tables as the answers of all nodes show them, and the faults at that time."""

    def __init__(self, cluster: Cluster) -> None:
        self.violations: list[str] = []
        self._cluster = cluster
        self._states: list[_State] = []
        # By the tables of a request: when one was answered last, and since when they are refused.
        self._served_at: dict[tuple[str, ...], float] = {}
        self._refused_since: dict[tuple[str, ...], float] = {}

    def observe(self) -> None:
        """Note the state of the nodes, if it has changed."""
        cluster, network = self._cluster, self._cluster.network
        processes = cluster.processes.values()
        state = _State(
            cluster.loop.time(),
            next((each.name for each in processes if _leads(each, network)), None),
            frozenset(each.name for each in processes if each.is_suspended),
            frozenset(cluster.cuts),
            frozenset(network.cut),
            network.slow_nodes(HOME_SECONDS),
        )
        if not self._states or self._states[-1][1:] != state[1:]:
            self._states.append(state)

    def note(self, asked: str, request: Request, sent_at: float, answer: Answer) -> None:
        """Note the answer to a request that the node ``asked`` got."""
        self.observe()
        names = tuple(sorted(find_tables(request).names))
        now = self._cluster.loop.time()
        if _NO_HOME in str(answer.body):
            self._note_refusal(asked, request, names, sent_at)
        if answer.status == 500:
            # Its connection or its home ended meanwhile.
            return
        for key in {names, *((name,) for name in names)}:
            self._served_at[key] = now
            self._refused_since.pop(key, None)

    def _note_refusal(
        self, asked: str, request: Request, names: tuple[str, ...], sent_at: float
    ) -> None:
        now = self._cluster.loop.time()
        operation = request.target.rpartition(".")[2]
        states = list(self._states_since(now - HOME_SECONDS))
        if all(
            state.serves(asked) and not state.without_store and not state.slow for state in states
        ):
            self.violations.append(
                f"{now:.3f}: {asked} found no home for {operation} of {names}, though leader and "
                "store were there"
            )
        began = max(sent_at, self._served_at.get(names, 0.0))
        if not all(state.serves(asked) for state in self._states_since(began)):
            return
        since = self._refused_since.get(names, began)
        if not all(state.leader for state in self._states_since(since)):
            since = began
        self._refused_since[names] = since
        is_slow = any(state.slow for state in self._states_since(since))
        if now - since > (MOST_CLOSED_SLOWLY_SECONDS if is_slow else MOST_CLOSED_SECONDS):
            self.violations.append(
                f"{now:.3f}: {operation} of {names} is refused for {now - since:.1f} s while a "
                "leader lives"
            )

    def _states_since(self, time: float) -> Iterator[_State]:
        """The states from a time until now, the latest first."""
        for state in reversed(self._states):
            yield state
            if state.since <= time:
                return


def _leads(process: Process, network: Network) -> bool:
    """Whether a process is the leader, and can work."""
    home = None if process.node is None else process.node.leadership
    return (
        home is not None
        and process.is_up
        and not process.is_suspended
        and process.name not in network.cut
        and network.server.epochs.get(LEADER_SLOT) == home.epoch
    )

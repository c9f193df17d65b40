"""The answer of ``GET /nodes`` of the admin listener."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

NODES_PATH: Final = "/nodes"


class NodeState(Struct, frozen=True):
    """A member of the cluster. ``missed_beats`` counts the renewals since its row last changed.

    ``is_home``: it is the leader. ``tables`` is the number of tables that the leader gave to it.
    """

    name: str
    address: str
    version: str
    is_home: bool
    is_leaving: bool
    missed_beats: int
    tables: int = 0


class NodesState(Struct, frozen=True):
    """The cluster as one node sees it.

    ``home`` is the leader. ``epoch`` rises each time that another node becomes the leader.
    """

    node: str
    home: str | None
    epoch: int
    members: list[NodeState]

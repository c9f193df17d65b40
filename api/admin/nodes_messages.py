"""The answer of ``GET /nodes`` of the admin listener."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

NODES_PATH: Final = "/nodes"


class NodeState(Struct, frozen=True):
    """A member of the cluster. ``missed_beats`` counts the renewals since its row last changed."""

    name: str
    address: str
    version: str
    is_home: bool
    is_leaving: bool
    missed_beats: int


class NodesState(Struct, frozen=True):
    """The cluster as one node sees it. ``epoch`` rises each time that a node becomes the home."""

    node: str
    home: str | None
    epoch: int
    members: list[NodeState]

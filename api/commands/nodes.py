"""The command ``dynactor nodes``: the nodes of a cluster, as one of them sees them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from cyclopts import Parameter

from dynactor.api.admin_api.nodes_messages import NODES_PATH, NodesState, NodeState
from dynactor.api.clients.server_address import ServerAddress


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NodesOptions:
    """The node to ask, and the form of the output."""

    json: Annotated[bool, Parameter(negative=())] = False
    """Print JSON."""

    server: ServerAddress = field(default_factory=ServerAddress)


def nodes(options: NodesOptions | None = None) -> None:
    """Run the command."""
    options = options or NodesOptions()
    state = options.server.admin_client().ask("GET", NODES_PATH, NodesState)
    if options.json:
        sys.stdout.write(msgspec.json.encode(state).decode() + "\n")
    else:
        sys.stdout.write(_text(state))


def _text(state: NodesState) -> str:
    rows = [("NODE", "ADDRESS", "VERSION", "STATE")]
    rows += [(each.name, each.address, each.version, _state(each)) for each in state.members]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    home = "no node is the leader" if state.home is None else f"the leader is {state.home}"
    lines.append(f"Seen by {state.node}: {home}, epoch {state.epoch}")
    return "".join(f"{line}\n" for line in lines)


def _state(node: NodeState) -> str:
    states = ["leader"] if node.is_home else []
    if node.tables:
        states.append(f"home of {node.tables} table{'s' * (node.tables > 1)}")
    states += ["leaving"] if node.is_leaving else []
    # The observer's renewal may come between two renewals of the other node.
    if node.missed_beats > 1:
        states.append(f"missed {node.missed_beats} beats")
    return ", ".join(states) or "no tables"

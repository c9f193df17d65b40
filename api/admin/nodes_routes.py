"""``GET /nodes`` of the admin listener: the nodes of the cluster, as this one sees them."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import web

from dynactor.api.admin.answers import fault, json_answer, other_method
from dynactor.api.admin_api.nodes_messages import NODES_PATH

if TYPE_CHECKING:
    from dynactor.api.nodes.node import Node


def answer(node: Node | None, request: web.BaseRequest) -> web.Response:
    """Answer a request for the path."""
    if request.method not in ("GET", "HEAD"):
        return other_method(NODES_PATH, "GET, HEAD")
    if node is None:
        return fault(
            HTTPStatus.NOT_FOUND,
            "This server is not a node of a cluster: start it with --peer-listen",
        )
    return json_answer(HTTPStatus.OK, node.state)


def not_leader(node: Node) -> web.Response:
    """The answer to a request that only the home can answer."""
    home = node.state.home
    advice = "there is none now, try again" if home is None else f"send this request to {home}"
    return fault(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"{node.membership.me.name} is not the home of the tables: {advice}",
    )

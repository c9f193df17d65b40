"""The assembly of a server that is a node of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from socket import socket
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from dynactor import __version__
from dynactor.actors.catalog.share import Share
from dynactor.actors.database.database import Database
from dynactor.actors.database.virtual_clock import ClockBehindData
from dynactor.api.admin import insights_routes
from dynactor.api.hosting.database_host import Opening, hosting_database
from dynactor.api.hosting.open_postgresql import (
    open_members,
    open_share,
    open_shared_postgresql,
)
from dynactor.api.hosting.store_settings import StoreSettings
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import listen
from dynactor.api.keys.session_tokens import SessionTokens
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.link import Link
from dynactor.api.nodes.membership import Membership
from dynactor.api.nodes.node import Node, OpenLeader, running_node
from dynactor.api.nodes.peer_listener import PeerListener, serving_peers
from dynactor.api.nodes.share_keeper import OpenShare
from dynactor.api.options.server_settings import ServerSettings
from dynactor.api.sts.stored_key import session_key
from dynactor.api.tls.node_certificate import NodeCertificate
from dynactor.storage.copies import refuse_unfinished_copy
from dynactor.storage.namespaces import settle_separation
from dynactor.storage.store import CannotOpen, Unavailable


class NodeParts(NamedTuple):
    """The parts of a node that do not depend on its role."""

    protocol: Protocol
    opening: Opening
    tokens: SessionTokens
    # None: connections between nodes are not encrypted.
    certificate: NodeCertificate | None


@asynccontextmanager
async def serving_as_node(settings: ServerSettings, parts: NodeParts) -> AsyncIterator[Node]:
    """A node of the cluster that ``settings`` name, ready to answer requests.

    Raises ``CannotListen`` or ``CannotOpen`` if the node can't join.
    """
    address = settings.nodes.address
    assert address is not None

    def opening_share(taken_over: Callable[[], None]) -> AbstractAsyncContextManager[OpenShare]:
        return _opening_share(settings.store, parts, taken_over)

    with listen(address.host, address.port, option_prefix="--peer-listen ") as listener:
        async with _membership(settings, listener, changes := Changes()) as membership:
            node = Node(
                membership,
                changes,
                parts.protocol,
                lambda taken_over: _opening_leader(settings.store, parts, taken_over),
                opening_share=opening_share if parts.opening.separation == "shared" else None,
                linking=lambda address: Link(
                    address,
                    settings.nodes.secret,
                    changes,
                    parts.certificate,
                    node=membership.me.name,
                ),
                insights=_insights,
                drain_seconds=settings.http.drain_seconds,
            )
            peers = PeerListener(
                node.answer_peer,
                settings.nodes.secret,
                is_leader=lambda: node.leadership is not None,
            )
            server = None if parts.certificate is None else parts.certificate.server
            async with serving_peers(listener, peers, server), running_node(node):
                yield node


async def _insights(database: Database, path: str) -> tuple[int, bytes]:
    asked = urlsplit(path)
    parameters = dict(parse_qsl(asked.query))
    response = await insights_routes.found(database, asked.path, parameters)
    assert isinstance(response.body, bytes)
    return response.status, response.body


@asynccontextmanager
async def _membership(
    settings: ServerSettings, listener: socket, changes: Changes
) -> AsyncIterator[Membership]:
    assert settings.store.url is not None
    port: int = listener.getsockname()[1]
    nodes = settings.nodes
    members = await open_members(
        settings.store.url, nodes.name_at(port), nodes.address_at(port), __version__
    )
    try:
        membership = Membership(members, changes)
        try:
            await membership.join()
        except Unavailable as error:
            raise CannotOpen(str(error)) from error
        yield membership
    finally:
        await members.close()


@asynccontextmanager
async def _opening_leader(
    store_settings: StoreSettings, parts: NodeParts, taken_over: Callable[[], None]
) -> AsyncIterator[OpenLeader]:
    """The databases, open on this node."""
    assert store_settings.url is not None
    opening = parts.opening
    async with open_shared_postgresql(
        store_settings.url, store_settings.read_url, taken_over
    ) as store:
        await refuse_unfinished_copy(store)
        region = await settle_separation(store, opening.separation, parts.opening.settings.region)
        parts.tokens.use(await session_key(store))
        try:
            if opening.separation == "shared":
                opening = opening.with_share(Share())
            async with hosting_database(store, opening.in_region(region)) as host:
                yield OpenLeader(store, store.epoch, host.databases)
        except ClockBehindData as error:
            raise CannotOpen(
                "The data have the time of a virtual clock after the real time: a cluster has none"
            ) from error


@asynccontextmanager
async def _opening_share(
    store_settings: StoreSettings, parts: NodeParts, taken_over: Callable[[], None]
) -> AsyncIterator[OpenShare]:
    """The database of this node's share, without tables at first."""
    assert store_settings.url is not None
    async with open_share(store_settings.url, store_settings.read_url, taken_over) as store:
        parts.tokens.use(await session_key(store))
        region = await settle_separation(store, "shared", parts.opening.settings.region)
        opening = parts.opening.with_share(Share(store.epoch)).in_region(region)
        async with hosting_database(store, opening) as host:
            yield OpenShare(store, store.epoch, host.databases)

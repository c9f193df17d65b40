"""A data directory that an earlier version wrote, and a server of this version on it."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from tests.support.clients.clients import STREAMS_TARGET_PREFIX, WireClient
from tests.support.servers.admin import ServerClock, admin_port, ask, server_with_clock
from tests.support.servers.server import PROJECT, Server
from tests.support.tables.tables import Call

WRITTEN_BY_6EE0983: Final = PROJECT / "tests" / "upgrade" / "written_by_6ee0983"

Item: TypeAlias = dict[str, dict[str, Any]]
Image: TypeAlias = Item | None


class Written(Struct, frozen=True):
    """The expected content of the directory, which ``write.py`` recorded in ``written.json``.

    ``items`` are in the order of a Scan. ``changes`` has the old and the new image of each change
    of a table with a stream. ``tables`` has members of DescribeTable, and ``states`` the changes of
    tables that were in progress when the server was stopped.
    """

    commit: str
    now_epoch_seconds: float
    last_expiry_epoch_seconds: float
    states: dict[str, str]
    stored_phases: dict[str, str]
    partition_counts: dict[str, int]
    requests: dict[str, dict[str, Any]]
    items: dict[str, list[Item]]
    changes: dict[str, list[tuple[Image, Image]]]
    tables: dict[str, dict[str, Any]]
    tags: list[dict[str, str]]
    contributor_insights: list[dict[str, Any]]
    destinations: dict[str, dict[str, Any]]
    published: dict[str, int]
    streams: dict[str, dict[str, Any]]
    disabled_stream: dict[str, Any]
    handed_out: dict[str, Any]
    tokens: list[dict[str, Any]]
    backups: dict[str, dict[str, Any]]

    def key_names(self, name: str) -> list[str]:
        """The names of a table's key attributes."""
        return attribute_names(self.requests[name])

    def key(self, name: str, item: Item) -> Item:
        """The key of an item."""
        return {attribute: item[attribute] for attribute in self.key_names(name)}


def written_by_6ee0983() -> Written:
    """The recorded content of commit 6ee0983."""
    return msgspec.json.decode((WRITTEN_BY_6EE0983 / "written.json").read_bytes(), type=Written)


def unpack(into: Path) -> Path:
    """Unpack the directory that commit 6ee0983 wrote, and return its path."""
    # Don't use extractall: Python 3.12 warns without a filter, and Python before 3.11.4 has no
    # filters.
    with tarfile.open(WRITTEN_BY_6EE0983 / "directory.tar.xz") as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            if content is not None:
                path = into / entry.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
    return into / "directory"


class Upgraded:
    """A server on the directory, its clock, and two clients of the server."""

    def __init__(
        self, server: Server, clock: ServerClock, wire: WireClient, streams: WireClient
    ) -> None:
        self.server = server
        self.clock = clock
        self.wire = wire
        self.streams = streams

    def partition_count(self, name: str) -> int:
        """The number of a table's own partitions."""
        page = ask(admin_port(self.server), "/metrics").body.decode()
        (line,) = [
            line
            for line in page.splitlines()
            if line.startswith("dynactor_partitions{")
            and f'table="{name}"' in line
            and 'index=""' in line
        ]
        return int(float(line.rpartition(" ")[2]))


@contextmanager
def upgraded(written: Written, directory: Path, *options: str) -> Iterator[Upgraded]:
    """A server on the directory; its virtual clock starts at the time of the last write."""
    start = written.now_epoch_seconds
    with (
        server_with_clock(start, *options, data_dir=directory) as (server, clock),
        closing(WireClient(server.endpoint)) as wire,
        closing(WireClient(server.endpoint, STREAMS_TARGET_PREFIX)) as streams,
    ):
        yield Upgraded(server, clock, wire, streams)


def attribute_names(keyed: dict[str, Any]) -> list[str]:
    """The names of the key attributes of a table or index."""
    return [key["AttributeName"] for key in keyed["KeySchema"]]


def indexes(request: dict[str, Any]) -> list[dict[str, Any]]:
    """All indexes in a CreateTable request."""
    kinds = ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")
    return [index for kind in kinds for index in request.get(kind, ())]


def entries(request: dict[str, Any], index: dict[str, Any], items: list[Item]) -> list[Item]:
    """The expected entries of an index for a table's items, sorted."""
    own = attribute_names(index)
    projection = index["Projection"]
    held = {*own, *attribute_names(request), *projection.get("NonKeyAttributes", ())}
    is_whole = projection["ProjectionType"] == "ALL"
    return in_order(
        {name: item[name] for name in item if is_whole or name in held}
        for item in items
        if all(name in item for name in own)
    )


def in_order(items: Iterator[Item] | list[Item]) -> list[Item]:
    """Items in a stable order."""
    return sorted(items, key=lambda item: msgspec.json.encode(item, order="sorted"))


def scanned(call: Call, name: str, **members: Any) -> list[Item]:
    """All items of a table or index, in the order of a Scan."""
    items: list[Item] = []
    request = {"TableName": name, **members}
    while True:
        page = call("Scan", request)
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def check_whole(
    call: Call, name: str, request: dict[str, Any], items: list[Item], **members: Any
) -> None:
    """Check that a table has these items, and its indexes have their entries."""
    assert in_order(scanned(call, name, **members)) == in_order(items), name
    for index in indexes(request):
        found = scanned(call, name, IndexName=index["IndexName"])
        assert in_order(found) == entries(request, index, items), (name, index["IndexName"])

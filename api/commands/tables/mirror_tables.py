"""Prepares the tables of a mirror: the source's stream, the copy, and the mark of the copy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from dynactor.api.clients.client import Endpoint, RequestFailed
from dynactor.api.commands.tables import table_copy
from dynactor.api.commands.tables.table_copy import MIRROR_TAG, Description, table_id
from dynactor.api.commands.tables.transfer_failed import TransferFailed

_POLL_SECONDS: Final = 0.5
_VIEW_TYPES: Final = ("NEW_IMAGE", "NEW_AND_OLD_IMAGES")

Say = Callable[[str], None]
Pause = Callable[[float], Awaitable[None]]


class Side(NamedTuple):
    """An endpoint and the name of a table there."""

    endpoint: Endpoint
    table_name: str


class PreparedTables(NamedTuple):
    """Both tables, and the source's stream."""

    source: Description
    target: Description
    stream_arn: str


async def prepare(
    source: Side, target: Side, *, creates: bool, enables_stream: bool, say: Say, pause: Pause
) -> PreparedTables:
    """Find both tables; create the copy, enable the stream if asked. Raises ``TransferFailed``."""
    described = await table_copy.describe(*source)
    if described is None:
        raise TransferFailed(f"The source has no table {source.table_name}")
    copy = await table_copy.describe(*target)
    if copy is None and not creates:
        raise TransferFailed(f"There is no table {target.table_name} to copy to: add --create")
    if copy is not None:
        table_copy.check_same_key(described, copy)
        if table_id(copy) == table_id(described):
            raise TransferFailed("Both addresses are of the same table")
        if copy["TableStatus"] == "CREATING":
            copy = await _active(target, pause)
    described, stream_arn = await _stream(source, described, enables=enables_stream, pause=pause)
    if copy is None:
        copy = await _create(source, target, described, say, pause)
    return PreparedTables(described, copy, stream_arn)


async def _stream(
    source: Side, described: Description, *, enables: bool, pause: Pause
) -> tuple[Description, str]:
    """The source with its stream's ARN, once the stream is enabled."""
    stream = described.get("StreamSpecification", {})
    if not stream.get("StreamEnabled"):
        if not enables:
            raise TransferFailed(
                f"The table {source.table_name} has no stream: add --enable-stream"
            )
        specification = {"StreamEnabled": True, "StreamViewType": _VIEW_TYPES[0]}
        await source.endpoint.call(
            "UpdateTable",
            {"TableName": source.table_name, "StreamSpecification": specification},
        )
        described = await _active(source, pause)
    elif stream["StreamViewType"] not in _VIEW_TYPES:
        raise TransferFailed(
            f"The stream of {source.table_name} shows {stream['StreamViewType']}: a mirror needs "
            f"{' or '.join(_VIEW_TYPES)}"
        )
    arn = str(described["LatestStreamArn"])
    while True:
        answer = await source.endpoint.call("DescribeStream", {"StreamArn": arn})
        if answer["StreamDescription"]["StreamStatus"] != "ENABLING":
            return described, arn
        await pause(_POLL_SECONDS)


async def _create(
    source: Side, target: Side, described: Description, say: Say, pause: Pause
) -> Description:
    tags = await table_copy.tags(source.endpoint, described["TableArn"])
    request = table_copy.creation_request(described, target.table_name, tags or [])
    await target.endpoint.call("CreateTable", request)
    copy = await _active(target, pause)
    attribute = await table_copy.time_to_live_attribute(*source)
    if attribute is not None:
        await table_copy.enable_time_to_live(*target, attribute)
    say(f"created the table {target.table_name}, without a stream")
    return copy


async def _active(side: Side, pause: Pause) -> Description:
    while True:
        description = await table_copy.describe(*side)
        if description is not None and description["TableStatus"] == "ACTIVE":
            return description
        await pause(_POLL_SECONDS)


async def mark(source: Side, target: Side, tables: PreparedTables, say: Say) -> None:
    """Tag the copy with its source, so that no mirror starts in the opposite direction.

    The tag is set before the other table's tag is read. So if two mirrors start at the same time,
    at least one of them sees the other's tag. Raises ``TransferFailed`` if a mirror in the opposite
    direction has not ended.
    """
    tag = {"Key": MIRROR_TAG, "Value": table_id(tables.source)}
    arn = tables.target["TableArn"]
    try:
        await target.endpoint.call("TagResource", {"ResourceArn": arn, "Tags": [tag]})
    except RequestFailed as error:
        if error.error_type not in table_copy.UNREADABLE:
            raise
        say("the copy can't be tagged: start no mirror in the opposite direction")
    tags = await table_copy.tags(source.endpoint, tables.source["TableArn"]) or []
    if {"Key": MIRROR_TAG, "Value": table_id(tables.target)} in tags:
        await unmark(target, tables.target)
        raise TransferFailed(
            f"A mirror in the opposite direction has not ended: end it first. If none runs, remove "
            f"the tag {MIRROR_TAG} of {source.table_name} at the source"
        )


async def unmark(target: Side, copy: Description) -> None:
    """Remove the tag of a copy."""
    request: dict[str, Any] = {"ResourceArn": copy["TableArn"], "TagKeys": [MIRROR_TAG]}
    try:
        await target.endpoint.call("UntagResource", request)
    except RequestFailed as error:
        if error.error_type not in table_copy.UNREADABLE:
            raise

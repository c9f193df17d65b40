"""Replays on the admin listener: jobs that publish a table's changes to a topic of Kafka again.

``POST /replays`` starts a replay, and ``GET /replays`` lists the running and the latest ended
replays. ``GET /replays/<id>`` shows the progress of a replay, ``DELETE /replays/<id>`` cancels it.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from dynactor.actors.database.database import Database
from dynactor.actors.derived.kafka.replay_progress import ReplayProgress, ReplayStart
from dynactor.actors.phases.replays import CancelReplay, Replays, StartReplay
from dynactor.actors.runtime.clock import LATEST_EPOCH_SECONDS
from dynactor.actors.runtime.mailbox import MailboxClosed
from dynactor.api.admin.answers import fault, json_answer, other_method, other_type, refused
from dynactor.api.admin_api.replay_messages import REPLAYS_PATH, ReplayAnswer, ReplayRequest
from dynactor.api.admin_api.times import is_length, iso_time, parse_length, parse_time
from dynactor.api.requests.destination_arn import own_topic
from dynactor.model.errors import DynamoDBError
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.streams import sequence_number
from dynactor.streams.sequence_number import WIRE_DIGITS

if TYPE_CHECKING:
    from dynactor.api.nodes.node import Node


async def answer(
    database: Database, request: web.BaseRequest, node: Node | None = None
) -> web.Response:
    """Answer a request below ``/replays``; ``node`` is the leader of a cluster, if any."""
    replay_id = request.path.removeprefix(REPLAYS_PATH).removeprefix("/")
    methods = "GET, HEAD, DELETE" if replay_id else "GET, HEAD, POST"
    if request.method not in methods.split(", "):
        return other_method(request.path, methods)
    try:
        if request.method == "POST":
            return await _started(database, request, node)
        if request.method == "DELETE":
            return json_answer(HTTPStatus.OK, _shown(await database.ask(CancelReplay(replay_id))))
        if replay_id:
            return json_answer(HTTPStatus.OK, _shown(database.part(Replays).find(replay_id)))
        return json_answer(
            HTTPStatus.OK, {"replays": list(map(_shown, database.part(Replays).all()))}
        )
    except (msgspec.MsgspecError, ValueError) as error:
        return fault(HTTPStatus.BAD_REQUEST, str(error))
    except DynamoDBError as error:
        return refused(error)
    except MailboxClosed:
        return fault(HTTPStatus.SERVICE_UNAVAILABLE, "The server is stopping")


async def _started(database: Database, request: web.BaseRequest, node: Node | None) -> web.Response:
    refusal = other_type(request)
    if refusal is not None:
        return refusal
    wanted = msgspec.json.decode(await request.read(), type=ReplayRequest)
    if node is not None:
        # The leader keeps the logs for replays.
        await node.recall(wanted.table)
    message = StartReplay(
        wanted.table,
        own_topic(database, wanted.to_topic),
        parse_start(wanted.start, database.clock.now_epoch_seconds()),
        wanted.follow,
    )
    return json_answer(HTTPStatus.CREATED, _shown(await database.ask(message)))


def parse_start(text: str, now_epoch_seconds: float) -> ReplayStart:
    """Parse the start of a replay in a table's changes.

    A duration, such as 1h, counts back from now. ``ValueError`` lists the valid forms.
    """
    if text == "beginning":
        return ReplayStart("beginning")
    if text == "snapshot":
        return ReplayStart("snapshot")
    if len(text) == WIRE_DIGITS and (number := sequence_number.parse(text)) is not None:
        return ReplayStart("sequence-number", number.packed())
    try:
        ago = is_length(text)
        seconds = now_epoch_seconds - parse_length(text) if ago else parse_time(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LATEST_EPOCH_SECONDS:
        raise ValueError(
            f"{text!r} is not a start: give beginning, snapshot, a sequence number of "
            f"{WIRE_DIGITS} digits, a length of time such as 1h, seconds since 1970, or ISO 8601 "
            "such as 2030-01-31T12:00:00Z"
        )
    return ReplayStart("time", round(seconds * MICROSECONDS_PER_SECOND))


def _start_text(start: ReplayStart) -> str:
    if start.origin == "sequence-number":
        return sequence_number.unpack(start.number).wire()
    if start.origin == "time":
        return iso_time(start.number / MICROSECONDS_PER_SECOND)
    return start.origin


def _shown(progress: ReplayProgress) -> ReplayAnswer:
    return ReplayAnswer(
        progress.replay_id,
        progress.table_name,
        progress.topic,
        _start_text(progress.start),
        progress.follows,
        progress.state,
        progress.problem,
        progress.is_whole,
        progress.items,
        progress.items_total,
        progress.changes,
        progress.changes_total,
        progress.missing_changes,
        progress.snapshots,
        progress.omitted_images,
    )

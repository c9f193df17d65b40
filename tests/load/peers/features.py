"""Each server's behavior: expired items, streams, throttling, conflicts and a sudden end."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from time import monotonic, sleep, time
from typing import Annotated, Any, Final

from cyclopts import Parameter
from cyclopts.types import PositiveFloat
from rich.console import Console

from tests.load.peers.launch import SERVER_NAMES, ServerName, is_on_disk
from tests.load.peers.requests import Refused, ask, call, make_table
from tests.load.peers.servers import Peer, running_peer, user_environment
from tests.load.servers import directory_on
from tests.support.clients.wire import Answer

_POLL_SECONDS: Final = 0.5
_EXPIRED_SECONDS: Final = 60
_RECORD_SECONDS: Final = 20
# A table of 1 unit may start with 300; these writes take 2,000.
_THROTTLED_WRITES: Final = 20
_THROTTLED_UNITS: Final = 100
_TEXT_OF_A_UNIT: Final = 1_000
_CONFLICT_CLIENTS: Final = 32
_CONFLICT_ROUNDS: Final = 20
_SYNCED_WRITES: Final = 100
_TRACER_SECONDS: Final = 2.0

_DEFINITION: Final[dict[str, Any]] = {
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
}
_ON_DEMAND: Final = {**_DEFINITION, "BillingMode": "PAY_PER_REQUEST"}
_STREAM: Final = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
_ONE_UNIT: Final = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """The servers, and how long to wait for them."""

    servers: Annotated[tuple[ServerName, ...], Parameter(consume_multiple=True, negative=())] = (
        SERVER_NAMES
    )
    """local is DynamoDB Local; without -memory on disk."""

    expiry_seconds: PositiveFloat = 90
    """Seconds to wait for the deletion of an expired item."""

    directory: Path | None = None
    """Directory on the disk to use. Default: a temporary one."""


def run_features(options: FeatureOptions, console: Console) -> None:
    """Test each server, and print the results.

    Raises:
        NoPeers: a server can't be started.
    """
    for name in options.servers:
        with directory_on(options.directory) as directory:
            with running_peer(name, directory, environment=user_environment()) as peer:
                answers = asyncio.run(_answers(peer, options.expiry_seconds))
            if is_on_disk(name):
                answers["kill -9"] = _survives(name, directory)
                answers["syncs"] = _syncs(name, directory)
        for question, answer in answers.items():
            console.print(f"{name}: {question}: {answer}", highlight=False, soft_wrap=True)


async def _answers(peer: Peer, expiry_seconds: float) -> dict[str, str]:
    return {
        "stream": await _answer_or_error(_stream(peer)),
        "throttling": await _answer_or_error(_throttling(peer)),
        "conflicts": await _answer_or_error(_conflicts(peer)),
        "expiry": await _answer_or_error(_expiry(peer, expiry_seconds)),
    }


async def _answer_or_error(answer: Awaitable[str]) -> str:
    """The answer, or the error of a refused request."""
    try:
        return await answer
    except Refused as error:
        return str(error)


async def _stream(peer: Peer) -> str:
    """The names of the stream records of a put, an update and a delete."""
    await make_table(peer, TableName="streamed", **_ON_DEMAND, StreamSpecification=_STREAM)
    key = {"pk": {"S": "1"}}
    await call(peer, "PutItem", TableName="streamed", Item=key)
    await call(
        peer,
        "UpdateItem",
        TableName="streamed",
        Key=key,
        UpdateExpression="SET a = :a",
        ExpressionAttributeValues={":a": {"N": "1"}},
    )
    await call(peer, "DeleteItem", TableName="streamed", Key=key)
    records = await _records(peer, "streamed")
    return ", ".join(record["eventName"] for record in records) or "no records"


async def _records(peer: Peer, table: str) -> list[dict[str, Any]]:
    """The records of all shards of a table's stream, up to the first empty page of each."""
    described = await call(peer, "DescribeTable", TableName=table)
    arn = described["Table"].get("LatestStreamArn")
    if arn is None:
        return []
    streams = "DynamoDBStreams"
    stream = await call(peer, "DescribeStream", streams, StreamArn=arn)
    records: list[dict[str, Any]] = []
    for shard in stream["StreamDescription"]["Shards"]:
        place = {
            "StreamArn": arn,
            "ShardId": shard["ShardId"],
            "ShardIteratorType": "TRIM_HORIZON",
        }
        answer = await call(peer, "GetShardIterator", streams, **place)
        iterator = answer.get("ShardIterator")
        while iterator:
            page = await call(peer, "GetRecords", streams, ShardIterator=iterator)
            records += page["Records"]
            iterator = page.get("NextShardIterator") if page["Records"] else None
    return records


async def _throttling(peer: Peer) -> str:
    """The number of write units until a table with 1 unit is throttled."""
    definition = {**_DEFINITION, "ProvisionedThroughput": _ONE_UNIT}
    await make_table(peer, TableName="slow", **definition)
    text = {"S": "x" * (_TEXT_OF_A_UNIT * _THROTTLED_UNITS)}
    for number in range(_THROTTLED_WRITES):
        item = {"pk": {"S": str(number)}, "text": text}
        answer = await ask(peer, "PutItem", {"TableName": "slow", "Item": item})
        if answer.status != 200:
            return f"{answer.error} after {number * _THROTTLED_UNITS} units"
    return f"none in {_THROTTLED_WRITES * _THROTTLED_UNITS} units"


async def _conflicts(peer: Peer) -> str:
    """The number of conflicts among concurrent transactions on the same two items."""
    await make_table(peer, TableName="contended", **_ON_DEMAND)
    results = await asyncio.gather(*(_transactions(peer) for _ in range(_CONFLICT_CLIENTS)))
    errors = list(chain.from_iterable(results))
    conflicts = sum("TransactionConflict" in error for error in errors)
    others = sorted({error for error in errors if error and "TransactionConflict" not in error})
    count = _CONFLICT_CLIENTS * _CONFLICT_ROUNDS
    return f"{conflicts} of {count} transactions" + "".join(f"; {other}" for other in others)


async def _transactions(peer: Peer) -> list[str]:
    """The errors of transactions, empty for success."""
    update = {
        "TableName": "contended",
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    updates = [{"Update": {**update, "Key": {"pk": {"S": key}}}} for key in ("a", "b")]
    errors = []
    for _ in range(_CONFLICT_ROUNDS):
        answer = await ask(peer, "TransactWriteItems", {"TransactItems": updates})
        errors.append("" if answer.status == 200 else _reasons(answer))
    return errors


def _reasons(answer: Answer) -> str:
    reasons = answer.body.get("CancellationReasons", [])
    return " ".join([answer.error, *sorted({reason["Code"] for reason in reasons})])


async def _expiry(peer: Peer, seconds: float) -> str:
    """Whether an expired item is deleted, and the form of its stream record."""
    await make_table(peer, TableName="aging", **_ON_DEMAND, StreamSpecification=_STREAM)
    setting = {"AttributeName": "expires", "Enabled": True}
    await call(peer, "UpdateTimeToLive", TableName="aging", TimeToLiveSpecification=setting)
    key = {"pk": {"S": "1"}}
    item = {**key, "expires": {"N": str(int(time()) - _EXPIRED_SECONDS)}}
    await call(peer, "PutItem", TableName="aging", Item=item)
    if not await _becomes(lambda: _is_gone(peer, key), seconds):
        return f"still there after {seconds:.0f} s"
    if not await _becomes(lambda: _deletion(peer), _RECORD_SECONDS):
        return "deleted; no stream record"
    record = await _deletion(peer) or {}
    origin = "names the service" if "userIdentity" in record else "does not name the service"
    return f"deleted; the stream record is {record['eventName']} and {origin}"


async def _becomes(question: Callable[[], Awaitable[object]], seconds: float) -> bool:
    """Whether an answer to the question is true within that time."""
    deadline = monotonic() + seconds
    while not await question():
        if monotonic() > deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


async def _is_gone(peer: Peer, key: dict[str, Any]) -> bool:
    return "Item" not in await call(peer, "GetItem", TableName="aging", Key=key)


async def _deletion(peer: Peer) -> dict[str, Any] | None:
    """The stream record that follows the one of the put."""
    records = await _records(peer, "aging")
    return next((record for record in records if record["eventName"] != "INSERT"), None)


def _survives(name: ServerName, directory: Path) -> str:
    """Whether an acknowledged write survives a kill of the process."""
    key = {"pk": {"S": "1"}}
    with running_peer(name, directory, environment=user_environment()) as peer:

        async def write() -> None:
            await make_table(peer, TableName="kept", **_ON_DEMAND)
            await call(peer, "PutItem", TableName="kept", Item=key)
            os.kill(peer.pid, signal.SIGKILL)

        asyncio.run(write())
    with running_peer(name, directory, environment=user_environment()) as peer:

        async def read() -> bool:
            return "Item" in await call(peer, "GetItem", TableName="kept", Key=key)

        return "the write is there" if asyncio.run(read()) else "the write is lost"


def _syncs(name: ServerName, directory: Path) -> str:
    """The number of syncs of a file during sequential writes."""
    strace = shutil.which("strace")
    if strace is None:
        return "not counted: there is no strace here"
    report = directory / "syncs.txt"
    with running_peer(name, directory, environment=user_environment()) as peer:
        calls = "trace=fsync,fdatasync,msync,sync_file_range"
        command = [strace, "-f", "-e", calls, "-o", str(report), "-p", str(peer.pid)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as tracer:
            sleep(_TRACER_SECONDS)

            async def write() -> None:
                for number in range(_SYNCED_WRITES):
                    item = {"pk": {"S": f"{number}"}}
                    await call(peer, "PutItem", TableName="kept", Item=item)

            asyncio.run(write())
            tracer.terminate()
        count = sum("(" in line and "resumed" not in line for line in report.open())
    return f"{count} in {_SYNCED_WRITES} writes"

"""A stream as DescribeStream shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dynactor.actors.database.database import Database
from dynactor.api.answers.table_description import key_schema, stream_arn
from dynactor.streams.shard import Shard, Stream

_TIME_DIGITS: Final = 3


def stream_description(
    database: Database, stream: Stream, shards: Sequence[Shard], last_shard_id: str | None
) -> dict[str, Any]:
    """The StreamDescription with these shards, and the start of the next page if any."""
    description = {
        "StreamArn": stream_arn(database, stream.table_name, stream.label),
        "StreamLabel": stream.label,
        "StreamStatus": "ENABLED" if stream.disabled_epoch_seconds is None else "DISABLED",
        "StreamViewType": stream.view_type,
        "CreationRequestDateTime": round(stream.created_epoch_seconds, _TIME_DIGITS),
        "TableName": stream.table_name,
        "KeySchema": key_schema(stream.key_schema),
        "Shards": [_shard_description(shard) for shard in shards],
    }
    if last_shard_id is not None:
        description["LastEvaluatedShardId"] = last_shard_id
    return description


def _shard_description(shard: Shard) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": shard.starting_sequence_number.wire()}
    if shard.ending_sequence_number is not None:
        numbers["EndingSequenceNumber"] = shard.ending_sequence_number.wire()
    description: dict[str, Any] = {"ShardId": shard.shard_id, "SequenceNumberRange": numbers}
    if shard.parent_id is not None:
        description["ParentShardId"] = shard.parent_id
    return description

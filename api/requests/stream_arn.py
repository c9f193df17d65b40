"""Finds the stream with an ARN."""

from __future__ import annotations

import re
from typing import Final

from dynactor.actors.database.database import Database
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.model.errors import ResourceNotFoundException, ValidationException
from dynactor.model.limits import NAME_CHARACTER, TABLE_NAME_CHARACTERS
from dynactor.streams.shard import Shard, Stream

_FEWEST, _MOST = TABLE_NAME_CHARACTERS
_ARN: Final = re.compile(
    r"arn:[^:]+:dynamodb:[^:]+:[0-9]+:"
    rf"table/({NAME_CHARACTER}{{{_FEWEST},{_MOST}}})/stream/([0-9T:.-]+)\Z",
    re.ASCII,
)


def named(arn: str) -> tuple[str, str]:
    """The table's name and the label in a stream's ARN; account and region are ignored.

    Raises ``ValidationException`` if the text is not a stream's ARN.
    """
    match = _ARN.match(arn)
    if match is None:
        raise ValidationException("Invalid StreamArn")
    return match[1], match[2]


def find_stream(database: Database, arn: str) -> Stream:
    """The stream with this ARN; raises ``ValidationException`` or ``ResourceNotFoundException``."""
    stream = database.part(StreamRegistry).find(*named(arn))
    if stream is None:
        raise ResourceNotFoundException(f"Requested resource not found: Stream: {arn} not found")
    return stream


def find_shard(stream: Stream, shard_id: str) -> Shard:
    """The shard with this id; raises ``ResourceNotFoundException``."""
    shard = stream.shard(shard_id)
    if shard is None:
        raise ResourceNotFoundException("Shard does not exist")
    return shard

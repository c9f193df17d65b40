"""Kafka topics in place of Kinesis streams: a topic has the ARN of a stream with its name."""

from __future__ import annotations

import re
from typing import Any, Final

from dynactor.actors.database.database import Database
from dynactor.actors.phases.destination_phases import DestinationPhases
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import StreamingDestination
from dynactor.model.errors import ValidationException
from dynactor.model.tables import destination_rules

_ARN: Final = re.compile(r"arn:[^:]+:kinesis:[^:]*:[0-9]*:stream/([^/:]+)\Z")


def find_topic(database: Database, stream_arn: str) -> str:
    """The topic that a StreamArn names; the account is ignored.

    With separate regions, a topic's name starts with its region, except for ``--region`` itself.
    Raises ``ValidationException`` if the text is no such ARN, or the topic may belong to another
    region.
    """
    match = _ARN.match(stream_arn)
    if match is None:
        raise ValidationException(
            f"Invalid StreamArn: {stream_arn} is not of the form "
            "arn:aws:kinesis:<region>:<account>:stream/<topic>"
        )
    return own_topic(database, match[1])


def own_topic(database: Database, name: str) -> str:
    """The topic with this name in a region; raises ``ValidationException`` if of another region."""
    settings = database.settings
    if settings.namespace is not None and not settings.topic_namespace:
        destination_rules.check_home_topic(name)
    return settings.topic_namespace + name


def described(
    database: Database, table: Table, destination: StreamingDestination
) -> dict[str, Any]:
    """The KinesisDataStreamDestination of an answer.

    DynamoDB has no state BROKEN: it is shown as ENABLE_FAILED, with a description that names it.
    """
    settings = database.settings
    members = {
        "StreamArn": f"arn:aws:kinesis:{settings.region}:{settings.account_id}:"
        f"stream/{destination.topic.removeprefix(settings.topic_namespace)}",
        "DestinationStatus": (
            "ENABLE_FAILED" if destination.status == "BROKEN" else destination.status
        ),
        "ApproximateCreationDateTimePrecision": destination.precision,
    }
    description = database.part(DestinationPhases).status_description(table, destination)
    if description is not None:
        members["DestinationStatusDescription"] = description
    return members

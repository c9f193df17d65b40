"""An operation of the API: its name, the shape of its input, and what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from actors.database import Database

InputT = TypeVar("InputT")

# A service as the X-Amz-Target header names it, before the operation.
DYNAMODB: Final = "DynamoDB_20120810"
DYNAMODB_STREAMS: Final = "DynamoDBStreams_20120810"


class Call(Struct, Generic[InputT], frozen=True):
    """One request to an operation, decoded, its constraints checked.

    ``host`` is the Host header, which DescribeEndpoints shows.
    """

    database: Database
    request: InputT
    host: str


class Operation(Struct, frozen=True):
    """What the registry knows of an operation.

    ``input`` is its input shape, a Struct with DynamoDB's member names; ``handle`` answers a
    ``Call`` of that shape with the JSON body, or raises a ``DynamoDBError``.
    """

    name: str
    input: type[Struct]
    handle: Callable[[Call[Any]], Awaitable[bytes]]
    service: str = DYNAMODB

    @property
    def target(self) -> str:
        """The X-Amz-Target header of its requests."""
        return f"{self.service}.{self.name}"

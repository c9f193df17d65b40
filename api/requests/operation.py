"""An operation of the API: its name, the shape of its input, and what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct

from dynactor.actors.catalog.database import Database
from dynactor.model.capacity.capacity import Receipt
from dynactor.model.capacity.explanation import Outcome, Paid
from dynactor.model.errors import DynamoDBError
from dynactor.model.tables.table import TableDefinition

InputT = TypeVar("InputT")


class Priced(Protocol):
    """What knows what it cost."""

    @property
    def receipt(self) -> Receipt: ...  # noqa: D102 - the class says it


PricedT = TypeVar("PricedT", bound=Priced)

# A service as the X-Amz-Target header names it, before the operation.
DYNAMODB: Final = "DynamoDB_20120810"
DYNAMODB_STREAMS: Final = "DynamoDBStreams_20120810"


class Call(Struct, Generic[InputT], frozen=True):
    """One request to an operation, decoded, its constraints checked.

    ``host`` is the Host header, which DescribeEndpoints shows. ``paid`` is where is noted what
    each part of the request cost; None if nobody asked for an explanation. ``headers`` are all of
    the request's, by their names in lower case.
    """

    database: Database
    request: InputT
    host: str
    paid: list[Paid] | None = None
    headers: Mapping[str, str] = {}

    def note(
        self, table: TableDefinition, receipt: Receipt, transaction: Outcome | None = None
    ) -> None:
        """Note what a part of the request cost on a table, if it is to be explained."""
        if self.paid is not None and receipt.work:
            self.paid.append(Paid(table, receipt, transaction))

    def noting(self, table: TableDefinition, work: Awaitable[PricedT]) -> Awaitable[PricedT]:
        """The same work; what it costs is noted, also where it fails."""
        return work if self.paid is None else self._noting(table, work)

    async def _noting(self, table: TableDefinition, work: Awaitable[PricedT]) -> PricedT:
        try:
            done = await work
        except DynamoDBError as error:
            self.note(table, error.receipt)
            raise
        self.note(table, done.receipt)
        return done


class Operation(Struct, frozen=True):
    """What the registry knows of an operation.

    ``input`` is its input shape, a Struct with DynamoDB's member names; ``handle`` answers a
    ``Call`` of that shape with the JSON body, or raises a ``DynamoDBError``. Where nothing has to
    be waited for it returns the body itself, which is sent at once.
    """

    name: str
    input: type[Struct]
    handle: Callable[[Call[Any]], Awaitable[bytes] | bytes]
    service: str = DYNAMODB

    @property
    def target(self) -> str:
        """The X-Amz-Target header of its requests."""
        return f"{self.service}.{self.name}"

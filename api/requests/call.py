"""A decoded request to an operation, and the services that have operations."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from dynactor.actors.database.database import Database
from dynactor.model.access.bucket_grant import BucketGrant
from dynactor.model.advice.explained_costs import Outcome, Paid
from dynactor.model.capacity import Receipt
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import DynamoDBError

InputT = TypeVar("InputT")


class Priced(Protocol):
    """A result or error with its receipt."""

    @property
    def receipt(self) -> Receipt: ...  # noqa: D102 - the class says it


PricedT = TypeVar("PricedT", bound=Priced)

# The names of services in the X-Amz-Target header.
DYNAMODB: Final = "DynamoDB_20120810"
DYNAMODB_STREAMS: Final = "DynamoDBStreams_20120810"


class Call(Struct, Generic[InputT], frozen=True):
    """One decoded request to an operation, with checked constraints.

    ``host`` is the Host header, which DescribeEndpoints shows. ``paid`` collects the costs of the
    request's parts; None if no explanation is requested. ``headers`` have names in lower case.
    """

    database: Database
    request: InputT
    host: str
    paid: list[Paid] | None = None
    headers: Mapping[str, str] = {}
    # A read of a past state: see ``as_of.py``.
    as_of_epoch_seconds: float | None = None
    # The objects that the request may use after its answer; None without policies.
    bucket_grant: BucketGrant | None = None

    def note(
        self, table: TableDefinition, receipt: Receipt, transaction: Outcome | None = None
    ) -> None:
        """Note the cost of a part of the request on a table, if an explanation is requested."""
        if self.paid is not None and receipt.work:
            self.paid.append(Paid(table, receipt, transaction))

    def noting(self, table: TableDefinition, work: Awaitable[PricedT]) -> Awaitable[PricedT]:
        """The same awaitable, with its cost noted when it is done, even if it fails."""
        return work if self.paid is None else self._noting(table, work)

    async def _noting(self, table: TableDefinition, work: Awaitable[PricedT]) -> PricedT:
        try:
            done = await work
        except DynamoDBError as error:
            self.note(table, error.receipt)
            raise
        self.note(table, done.receipt)
        return done

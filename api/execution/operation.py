"""An operation of the API: everything that the server knows about it, in one place.

``dynactor.api.registry`` finds the operations, one in each file of ``dynactor.api.operations``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from dynactor.api.access.ask import AskRule
from dynactor.api.access.bucket_asks import ObjectsRule
from dynactor.api.requests.call import DYNAMODB, Call
from dynactor.api.requests.foreign_arns import ArnErrors
from dynactor.api.requests.validation_errors import OLDER, Layer


class Effect(Enum):
    """How an operation uses the store."""

    # It answers by what the node has in memory. It changes nothing.
    DESCRIBES = auto()
    # It reads rows. It changes nothing.
    READS = auto()
    # It may change something.
    WRITES = auto()


class Location(Enum):
    """The node of a cluster that executes an operation."""

    # The home of the tables that the request names; the leader if they have several homes.
    HOME = auto()
    # The leader, once it is the home of all tables that the request names.
    LEADER_WITH_TABLES = auto()
    # The leader, which knows enough about the tables that the request names.
    LEADER = auto()


# The injected faults that happen to some operations only.
OperationFault: TypeAlias = Literal[
    "throttling", "transaction-conflict", "unprocessed", "limit-exceeded", "expired-iterator"
]
DATA_FAULTS: Final[frozenset[OperationFault]] = frozenset({"throttling"})
WRITE_FAULTS: Final[frozenset[OperationFault]] = DATA_FAULTS | {"transaction-conflict"}
STREAM_FAULTS: Final[frozenset[OperationFault]] = DATA_FAULTS | {
    "limit-exceeded",
    "expired-iterator",
}
BATCH_FAULTS: Final[frozenset[OperationFault]] = DATA_FAULTS | {"unprocessed"}


class Operation(Struct, frozen=True):
    """An operation, its input, its handler and its properties.

    ``input`` is its input shape, a Struct with DynamoDB's member names. ``handle`` answers a
    ``Call`` of that shape with the JSON body, or raises a ``DynamoDBError``. A handler that waits
    for nothing returns the body itself instead of an awaitable, and the body is sent at once.
    ``asks`` yields the actions that policies must allow. The other defaults are right for an
    operation on tables that may change anything.
    """

    input: type[Struct]
    handle: Callable[[Call[Any]], Awaitable[bytes] | bytes]
    asks: AskRule
    effect: Effect = Effect.WRITES
    location: Location = Location.LEADER_WITH_TABLES
    service: str = DYNAMODB
    # AWS's request layer, which decides about the texts and the order of errors.
    layer: Layer = OLDER
    arn_errors: ArnErrors = ArnErrors()
    # The objects of buckets that the operation uses after its answer.
    objects: ObjectsRule | None = None
    # Whether the operation can read tables as they were at a time.
    reads_past: bool = False
    # Whether a body changes nothing, although other bodies may.
    reads_only: Callable[[bytes], bool] | None = None
    faults: frozenset[OperationFault] = frozenset()
    is_transaction: bool = False
    # The member of a batch's answer with the unprocessed part.
    unprocessed_member: str = ""
    # Given if several operations share an input; otherwise the input's, without "Input".
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            force_setattr(self, "name", self.input.__name__.removesuffix("Input"))

    @property
    def target(self) -> str:
        """The X-Amz-Target header of the operation's requests."""
        return f"{self.service}.{self.name}"

    @property
    def is_read(self) -> bool:
        """Whether the operation changes nothing, whatever its body is."""
        return self.effect is not Effect.WRITES

"""DynamoDB's errors, one class per wire type.

Every class knows its wire name and HTTP status; the message is DynamoDB's exact text, given
where the error is raised. Only ``api/http/protocol.py`` turns an error into JSON. Any exception
that is no ``DynamoDBError`` is a bug of ours and answers 500.

Source: API reference, "Error handling with DynamoDB", and botocore's service model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct

from dynactor.model.capacity.capacity import Receipt
from dynactor.model.validation_faults import Fault

_SERVICE: Final = "com.amazonaws.dynamodb.v20120810"
_CORAL_SERVICE: Final = "com.amazon.coral.service"
_CORAL_VALIDATE: Final = "com.amazon.coral.validate"
_NOTHING: Final = Receipt()


class DynamoDBError(Exception):
    """The root of all errors that a client may be told."""

    namespace: ClassVar[str] = _SERVICE
    http_status: ClassVar[int] = 400

    def __init__(self, message: str, receipt: Receipt = _NOTHING) -> None:
        """``receipt`` is what the request cost all the same."""
        super().__init__(message)
        self.message = message
        self.receipt = receipt

    @property
    def wire_type(self) -> str:
        """The ``__type`` member: namespace, ``#``, name."""
        return f"{self.namespace}#{type(self).__name__}"

    def members(self) -> dict[str, Any]:
        """The members of the error's JSON body beside ``__type``."""
        return {"message": self.message}


class ValidationException(DynamoDBError):
    """The request is well formed and breaks a rule.

    The message is in the words of AWS's older request layer. ``fault`` says what is wrong with a
    value that the newer layer has other words for; ``is_of_request`` is set if the fault was found
    before any table was looked at. ``dynactor.api.requests.validation_errors`` words the answer by
    both.
    """

    namespace = _CORAL_VALIDATE
    fault: Fault | None = None
    is_of_request: bool = False


class SerializationException(DynamoDBError):
    """The body is not JSON, or a member has another JSON type than its shape."""

    namespace = _CORAL_SERVICE

    def members(self) -> dict[str, Any]:
        """DynamoDB spells this error's member with a capital letter, or leaves it out."""
        return {"Message": self.message} if self.message else {}


class UnknownOperationException(DynamoDBError):
    """The target names no operation of the API."""

    namespace = _CORAL_SERVICE

    def members(self) -> dict[str, Any]:
        """An unknown operation is answered without a message by DynamoDB."""
        return {"message": self.message} if self.message else {}


class MissingAuthenticationTokenException(DynamoDBError):
    """The request carries no credentials at all."""

    namespace = _CORAL_SERVICE


class IncompleteSignatureException(DynamoDBError):
    """Something is missing from the request's signature."""

    namespace = _CORAL_SERVICE


class InvalidSignatureException(DynamoDBError):
    """The request's signature is of another time, or of another request."""

    namespace = _CORAL_SERVICE


class UnrecognizedClientException(DynamoDBError):
    """The request is signed by a key that is not known."""

    namespace = _CORAL_SERVICE


class AccessDeniedException(DynamoDBError):
    """The request may not be made from there, or not in that way."""

    namespace = _CORAL_SERVICE
    http_status = 403


class RequestEntityTooLargeException(DynamoDBError):
    """The body is larger than 16 MB."""

    namespace = _CORAL_SERVICE
    http_status = 413


class ConditionalCheckFailedException(DynamoDBError):
    """A condition was false; carries the item where the request asked for it."""

    def __init__(
        self,
        message: str = "The conditional request failed",
        item: dict[str, Any] | None = None,
        receipt: Receipt = _NOTHING,
    ) -> None:
        super().__init__(message, receipt)
        self.item = item

    def members(self) -> dict[str, Any]:
        """The message, and the item if it is to be returned."""
        if self.item is None:
            return {"message": self.message}
        return {"message": self.message, "Item": self.item}


class DuplicateItemException(DynamoDBError):
    """A PartiQL INSERT met an item with its key."""


class TransactionConflictException(DynamoDBError):
    """A transaction that is under way has the item."""

    def __init__(self, message: str = "Transaction is ongoing for the item") -> None:
        super().__init__(message)


class CancellationReason(Struct, frozen=True):
    """What one action of a cancelled transaction had to do with that; ``None``: nothing."""

    code: str = "None"
    message: str | None = None
    item: dict[str, Any] | None = None

    def members(self) -> dict[str, Any]:
        """As the wire has it: without what is not there."""
        members = {"Item": self.item, "Code": self.code, "Message": self.message}
        return {name: value for name, value in members.items() if value is not None}


class TransactionCanceledException(DynamoDBError):
    """Nothing of a transaction was done; the reasons stand in the order of its actions.

    ``receipts``, if any, are what each action has taken all the same.
    """

    def __init__(
        self, reasons: Sequence[CancellationReason], receipts: Sequence[Receipt] = ()
    ) -> None:
        codes = ", ".join(reason.code for reason in reasons)
        super().__init__(
            "Transaction cancelled, please refer cancellation reasons for specific reasons "
            f"[{codes}]"
        )
        self.reasons = tuple(reasons)
        self.receipts = tuple(receipts)

    def members(self) -> dict[str, Any]:
        """The message, with a capital letter in this error, and the reasons."""
        return {
            "Message": self.message,
            "CancellationReasons": [reason.members() for reason in self.reasons],
        }


class TransactionInProgressException(DynamoDBError):
    """The transaction that was first sent with this token is still under way."""

    def members(self) -> dict[str, Any]:
        """Its member has a capital letter (botocore's service model)."""
        return {"Message": self.message}


class IdempotentParameterMismatchException(DynamoDBError):
    """Another transaction was sent with this token before."""

    def members(self) -> dict[str, Any]:
        """Its member has a capital letter (botocore's service model)."""
        return {"Message": self.message}


class ResourceNotFoundException(DynamoDBError):
    """The table or other resource does not exist, or is not ready."""


class PolicyNotFoundException(DynamoDBError):
    """The resource is there, and has no policy."""


class TableNotFoundException(DynamoDBError):
    """As ResourceNotFoundException, in the backup operations."""


class TableAlreadyExistsException(DynamoDBError):
    """There is a table of the name that a restored one is to get."""


class TableInUseException(DynamoDBError):
    """As ResourceInUseException, in the backup operations."""


class BackupNotFoundException(DynamoDBError):
    """There is no such backup of a table, or not any more."""


class BackupInUseException(DynamoDBError):
    """The backup of a table is being made, or restored from."""


class ResourceInUseException(DynamoDBError):
    """The resource exists already, or is changing state."""


class LimitExceededException(DynamoDBError):
    """Too many control operations, or too large a value in one."""


class ItemCollectionSizeLimitExceededException(DynamoDBError):
    """An item collection of a table with local secondary indexes is over its limit (S66)."""


class ExpiredIteratorException(DynamoDBError):
    """A shard iterator is older than a quarter of an hour."""


class TrimmedDataAccessException(DynamoDBError):
    """The stream records that are asked for are older than what is kept."""


class ThrottlingReason(Struct, frozen=True, cache_hash=True):
    """Which limit refused a request, and the ARN of the table or index whose limit it is.

    ``reason`` is put together of resource, operation and limit, such as
    IndexWriteKeyRangeThroughputExceeded (API reference, "ThrottlingReason").
    """

    reason: str
    resource: str


class Throttled(DynamoDBError):
    """A request that may be sent again; knows why it was refused, where a limit did it."""

    reasons_member: ClassVar[str] = "ThrottlingReasons"

    def __init__(self, message: str, reasons: tuple[ThrottlingReason, ...] = ()) -> None:
        super().__init__(message)
        self.reasons = reasons

    def members(self) -> dict[str, Any]:
        """The message, and the reasons if there are any."""
        if not self.reasons:
            return {"message": self.message}
        return {"message": self.message, self.reasons_member: list(self.reasons)}


class ProvisionedThroughputExceededException(Throttled):
    """The request rate is above what the table or index allows."""


class ThrottlingException(Throttled):
    """The request was refused before it was begun; it may be sent again."""

    # With a small letter, in this one error of the three (botocore's service model).
    reasons_member = "throttlingReasons"


class RequestLimitExceeded(Throttled):
    """The account's request rate is above its quota."""


class InternalServerError(DynamoDBError):
    """A fault of the server; the outcome of a write is unknown to its client."""

    http_status = 500


class ServiceUnavailable(DynamoDBError):
    """The service can't be reached for the moment; the request may be sent again."""

    http_status = 503

"""DynamoDB's errors, one class per wire type.

Every class has its wire name and HTTP status. The message is DynamoDB's exact text, set where the
error is raised. Only ``api/http/protocol.py`` turns an error into JSON. An exception that is not a
``DynamoDBError`` is a bug in the server and answers 500.

Source: API reference, "Error handling with DynamoDB", and botocore's service model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct

from dynactor.model.capacity import Receipt
from dynactor.model.validation_faults import Fault

_SERVICE: Final = "com.amazonaws.dynamodb.v20120810"
_CORAL_SERVICE: Final = "com.amazon.coral.service"
_CORAL_VALIDATE: Final = "com.amazon.coral.validate"
_NOTHING: Final = Receipt()


class DynamoDBError(Exception):
    """The root of all errors that are sent to clients."""

    namespace: ClassVar[str] = _SERVICE
    http_status: ClassVar[int] = 400
    # The name on the wire, if it is not the class's.
    code: ClassVar[str] = ""

    def __init__(self, message: str, receipt: Receipt = _NOTHING) -> None:
        """``receipt`` is the cost of the failed request."""
        super().__init__(message)
        self.message = message
        self.receipt = receipt

    @property
    def wire_type(self) -> str:
        """The ``__type`` member: namespace, ``#``, name."""
        return f"{self.namespace}#{self.name}"

    @property
    def name(self) -> str:
        """The error's name on the wire."""
        return self.code or type(self).__name__

    def members(self) -> dict[str, Any]:
        """The members of the error's JSON body besides ``__type``."""
        return {"message": self.message}


class ValidationException(DynamoDBError):
    """The request is well formed but breaks a rule.

    The message is the one of AWS's older request layer. ``fault`` describes a faulty value for
    which the newer layer has another message. ``is_of_request`` is set if the fault was found
    before any table was read. ``dynactor.api.requests.validation_errors`` chooses the message from
    these two attributes.
    """

    namespace = _CORAL_VALIDATE
    is_of_request: bool = False

    def __init__(
        self, message: str, receipt: Receipt = _NOTHING, *, fault: Fault | None = None
    ) -> None:
        super().__init__(message, receipt)
        self.fault = fault


def invalid_value(message: str, *, fault: Fault | None = None) -> ValidationException:
    """The error for a parameter's invalid value."""
    return ValidationException(f"One or more parameter values were invalid: {message}", fault=fault)


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
        """DynamoDB answers an unknown operation without a message."""
        return {"message": self.message} if self.message else {}


class MissingAuthenticationTokenException(DynamoDBError):
    """The request has no credentials."""

    namespace = _CORAL_SERVICE


class IncompleteSignatureException(DynamoDBError):
    """A part of the request's signature is missing."""

    namespace = _CORAL_SERVICE


class InvalidSignatureException(DynamoDBError):
    """The request's signature is expired or was made for another request."""

    namespace = _CORAL_SERVICE


class UnrecognizedClientException(DynamoDBError):
    """The request is signed with an unknown key."""

    namespace = _CORAL_SERVICE


class ExpiredTokenException(DynamoDBError):
    """The temporary credentials of the request have expired."""

    namespace = _CORAL_SERVICE


class AccessDeniedException(DynamoDBError):
    """The request is not allowed from this address or in this form."""

    namespace = _CORAL_SERVICE
    http_status = 403


class ActionDeniedException(AccessDeniedException):
    """The policies of the caller do not allow an action of the request."""

    http_status = 400
    code = "AccessDeniedException"

    def members(self) -> dict[str, Any]:
        """AWS spells this error's member with a capital letter."""
        return {"Message": self.message}


class RequestEntityTooLargeException(DynamoDBError):
    """The body is larger than 16 MB."""

    namespace = _CORAL_SERVICE
    http_status = 413


class ConditionalCheckFailedException(DynamoDBError):
    """A condition was false. The error has the existing item if the request asks for the item."""

    def __init__(
        self,
        message: str = "The conditional request failed",
        item: dict[str, Any] | None = None,
        receipt: Receipt = _NOTHING,
    ) -> None:
        super().__init__(message, receipt)
        self.item = item

    def members(self) -> dict[str, Any]:
        """The message, and the existing item if the request asks for the item."""
        if self.item is None:
            return {"message": self.message}
        # With an item, AWS spells the message's member with a capital letter.
        return {"Message": self.message, "Item": self.item}


class DuplicateItemException(DynamoDBError):
    """An item with the key of a PartiQL INSERT exists already."""


class TransactionConflictException(DynamoDBError):
    """Another transaction in progress has locked the item."""

    def __init__(self, message: str = "Transaction is ongoing for the item") -> None:
        super().__init__(message)


class CancellationReason(Struct, frozen=True):
    """The reason why one action of a canceled transaction failed; the code is None for others."""

    code: str = "None"
    message: str | None = None
    item: dict[str, Any] | None = None

    def members(self) -> dict[str, Any]:
        """The wire form, without missing members."""
        members = {"Item": self.item, "Code": self.code, "Message": self.message}
        return {name: value for name, value in members.items() if value is not None}


class TransactionCanceledException(DynamoDBError):
    """The transaction was canceled; the reasons are in the order of its actions.

    ``receipts``, if any, are the costs of the actions.
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
        """The message, whose member name is capitalized in this error, and the reasons."""
        return {
            "Message": self.message,
            "CancellationReasons": [reason.members() for reason in self.reasons],
        }


class TransactionInProgressException(DynamoDBError):
    """The transaction that was first sent with this token is still in progress."""

    def members(self) -> dict[str, Any]:
        """The message, whose member name is capitalized here (botocore's service model)."""
        return {"Message": self.message}


class IdempotentParameterMismatchException(DynamoDBError):
    """Another transaction was sent with this token before."""

    def members(self) -> dict[str, Any]:
        """The message, whose member name is capitalized here (botocore's service model)."""
        return {"Message": self.message}


class ResourceNotFoundException(DynamoDBError):
    """The table or other resource does not exist, or is not ready."""


class PolicyNotFoundException(DynamoDBError):
    """The resource exists but has no policy."""


class TableNotFoundException(DynamoDBError):
    """The table does not exist; backup operations use this error, not ResourceNotFoundException."""


class GlobalTableNotFoundException(DynamoDBError):
    """The table is no global table of the version 2017.11.29."""


class TableAlreadyExistsException(DynamoDBError):
    """A table with the restored table's name exists."""


class TableInUseException(DynamoDBError):
    """The table is changing state; backup operations use this error, not ResourceInUseException."""


class BackupNotFoundException(DynamoDBError):
    """The table backup does not exist, or was deleted."""


class BackupInUseException(DynamoDBError):
    """The table backup is being created or restored."""


class ContinuousBackupsUnavailableException(DynamoDBError):
    """The table is being created, so its recovery can't be changed yet."""


class PointInTimeRecoveryUnavailableException(DynamoDBError):
    """The table has no point-in-time recovery."""


class InvalidRestoreTimeException(DynamoDBError):
    """The table can't be restored to this time."""


class ExportNotFoundException(DynamoDBError):
    """The export does not exist, or ended more than 90 days ago."""


class ExportConflictException(DynamoDBError):
    """Another export was started with this client token."""


class InvalidExportTimeException(DynamoDBError):
    """The table can't be exported as it was at this time."""


class ImportNotFoundException(DynamoDBError):
    """The import does not exist, or ended more than 90 days ago."""


class ImportConflictException(DynamoDBError):
    """Another import was started with this client token."""


class ResourceInUseException(DynamoDBError):
    """The resource exists already, or is changing state."""


class LimitExceededException(DynamoDBError):
    """Too many control operations run at the same time, or a value in one is too large."""


class ItemCollectionSizeLimitExceededException(DynamoDBError):
    """An item collection of a table with local secondary indexes is over its limit (S66)."""


class ExpiredIteratorException(DynamoDBError):
    """The shard iterator is older than 15 minutes."""


class TrimmedDataAccessException(DynamoDBError):
    """The requested stream records are past the retention period."""


class ThrottlingReason(Struct, frozen=True, cache_hash=True):
    """The limit that refused a request, and the ARN of its table or index.

    ``reason`` is composed of resource, operation and limit, such as
    IndexWriteKeyRangeThroughputExceeded (API reference, "ThrottlingReason").
    """

    reason: str
    resource: str


class Throttled(DynamoDBError):
    """The request was throttled, so the client may retry. ``reasons`` are the exceeded limits."""

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
    """The request was refused before it started; the client may retry."""

    # The member is not capitalized, in this error only (botocore's service model).
    reasons_member = "throttlingReasons"


class RequestLimitExceeded(Throttled):
    """The account's request rate is above its quota."""


class InternalServerError(DynamoDBError):
    """An internal failure; the outcome of a write is unknown, unless ``wrote_nothing``."""

    http_status = 500

    @property
    def wrote_nothing(self) -> bool:
        """Whether a write failed without any effect."""
        return self.message.startswith("Nothing was written")


class ServiceUnavailable(DynamoDBError):
    """The service is temporarily unreachable; the client may retry."""

    http_status = 503

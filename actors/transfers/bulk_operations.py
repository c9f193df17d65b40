"""Starts, cancels and lists bulk operations.

An operation runs in the background until its end, which it reports to the actor. It does not
continue after a restart, because a repeated write could overwrite a later write of a client.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import structlog
from msgspec import structs

from dynactor.actors.parts.long_work import Pieces
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import OwnMessage
from dynactor.actors.table.table import Table
from dynactor.actors.transfers.bulk_put import BulkPut
from dynactor.actors.transfers.kept_transfers import KeptTransfers
from dynactor.actors.transfers.transfer_buckets import TransferBuckets
from dynactor.model.access.bucket_grant import BucketGrant
from dynactor.model.errors import (
    IdempotentParameterMismatchException,
    LimitExceededException,
    ResourceNotFoundException,
)
from dynactor.model.limits import BULK_OPERATIONS
from dynactor.model.transfers.bulk_operation import BulkOperation, BulkStatus
from dynactor.storage import transfers
from dynactor.storage.catalog import Catalog

_CANCELED: Final = ("BulkOperationCancelled", "CancelBulkOperation stopped the operation")
_CRASHED: Final = ("InternalServerError", "The operation failed because of an internal error")
_RESTARTED: Final = (
    "InternalServerError",
    "The server was restarted; start the operation again",
)

_log = structlog.get_logger("actors")


class StartBulkPutItems(Message[BulkOperation], frozen=True):
    """Put the items of files into a table.

    ``request`` has the members of the request. ``grant`` has the objects that the caller may use;
    None without policies. Raises ``ResourceNotFoundException``, ``ResourceInUseException``,
    ``IdempotentParameterMismatchException`` if the client token was used for another operation, or
    ``LimitExceededException`` if too many bulk operations are in progress.
    """

    table_name: str
    request: dict[str, Any]
    grant: BucketGrant | None = None


class CancelBulkOperation(Message[BulkOperation], frozen=True):
    """Stop an operation once no write of it is in flight; items that are written stay.

    The reply is the operation as it was if it is over. Raises ``ResourceNotFoundException``.
    """

    operation_id: str


class EndBulkOperation(OwnMessage, frozen=True):
    """The work of an operation has ended."""

    operation_id: str


class BulkOperations(Part):
    """Starts, cancels and lists bulk operations. Invariant: every one in memory is durable."""

    is_leaders = True

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._buckets = parts[TransferBuckets].buckets
        self.handlers = {
            StartBulkPutItems: self._begin,
            CancelBulkOperation: self._cancel,
            EndBulkOperation: self._end,
        }
        self._operations: KeptTransfers[BulkOperation] = KeptTransfers(
            self._clock,
            parts.environment.randomness,
            key=transfers.bulk_operation_key,
            since=lambda one: one.began_epoch_seconds if one.is_over else None,
        )
        # The operations of this process whose end is not stored.
        self._running: dict[str, BulkPut] = {}

    # -- for requests -----------------------------------------------------------------------

    def find(self, operation_id: str) -> BulkOperation | None:
        """The operation with this id, with its present counts; None if it was forgotten."""
        found = self._operations.find(operation_id)
        return None if found is None else self._present(found)

    @property
    def operations(self) -> Sequence[BulkOperation]:
        """The operations that are in progress or began in the last 90 days, the newest first."""
        return list(map(self._present, self._operations.listed))

    def _present(self, found: BulkOperation) -> BulkOperation:
        running = self._running.get(found.operation_id)
        return found if running is None else structs.replace(found, progress=running.progress)

    # -- for the database's actor -------------------------------------------------------------

    async def adopt(self, _loaded: Catalog) -> None:
        """Load the stored operations, and end those of an earlier process."""
        stored = await transfers.load_bulk_operations(self._store.latest)
        self._operations.load((each.operation_id, each) for each in stored)
        for each in stored:
            if not each.is_over and each.operation_id not in self._running:
                self._parts.tell(EndBulkOperation(each.operation_id))

    async def keep(self, _now_epoch_seconds: float) -> Pieces:
        """Delete the records of operations that are over and began more than 90 days ago."""
        await self._operations.forget_old(self._owner)
        yield

    def may_move(self, table: Table) -> bool:
        """Whether no operation that is running writes the table."""
        running = map(self._operations.find, self._running)
        return not any(each and each.table_id == table.definition.table_id for each in running)

    async def _begin(self, message: StartBulkPutItems) -> BulkOperation:
        """Start an operation, unless the request is a repetition."""
        conflict = "The client token was used for a bulk operation with other parameters"
        same = self._operations.with_same_token(
            message.request, IdempotentParameterMismatchException(conflict)
        )
        if same is not None:
            return self._present(same)
        definition = self._tables.settled(message.table_name).definition
        if len(self._running) >= BULK_OPERATIONS:
            raise LimitExceededException(
                f"Subscriber limit exceeded: Only {BULK_OPERATIONS} bulk operations can run "
                "simultaneously"
            )
        operation_id, now = self._operations.new_id()
        operation = BulkOperation(
            operation_id,
            definition.name,
            definition.table_id,
            definition.uuid,
            message.request,
            now,
            grant=message.grant,
        )
        await self._put(operation)
        put = BulkPut(operation, self._tables, self._buckets, self._clock)
        self._running[operation_id] = put
        self._supervisor.run_in_background(self._run, operation_id, put)
        return operation

    async def _run(self, operation_id: str, put: BulkPut) -> None:
        try:
            await put.run()
        finally:
            self._parts.tell(EndBulkOperation(operation_id))

    async def _cancel(self, message: CancelBulkOperation) -> BulkOperation:
        found = self._operations.find(message.operation_id)
        if found is None:
            raise ResourceNotFoundException("The bulk operation does not exist")
        if found.status == "IN_PROGRESS":
            found = structs.replace(found, status="CANCELLING")
            await self._put(found)
            put = self._running.get(found.operation_id)
            if put is not None:
                put.cancel()
        return found

    async def _end(self, message: EndBulkOperation) -> None:
        """Store the end of an operation unless it is stored; ``StoreError`` changes nothing."""
        found = self._operations[message.operation_id]
        if found.is_over:
            return
        put = self._running.get(found.operation_id)
        status, reason = _outcome(found, put)
        over = structs.replace(
            self._present(found),
            status=status,
            ended_epoch_seconds=self._clock.now_epoch_seconds(),
            failure_code=None if reason is None else reason[0],
            failure_message=None if reason is None else reason[1],
        )
        await self._put(over)
        self._running.pop(found.operation_id, None)
        is_failed = status == "FAILED"
        (_log.error if is_failed else _log.info)(
            "bulk_operation_failed" if is_failed else "bulk_operation_ended",
            table=over.table_name,
            operation=over.operation_id,
            status=status,
            items=over.progress.processed_items,
            errors=over.progress.failed_items,
            code=over.failure_code,
            reason=over.failure_message,
        )

    async def _put(self, operation: BulkOperation) -> None:
        await self._owner.change(puts=[transfers.bulk_operation_row(operation)])
        self._operations[operation.operation_id] = operation


def _outcome(
    operation: BulkOperation, put: BulkPut | None
) -> tuple[BulkStatus, tuple[str, str] | None]:
    """The last status of an operation, and the code and message of a failure."""
    if put is None:
        # The operation belongs to an earlier process.
        is_canceled = operation.status == "CANCELLING"
        return ("CANCELLED", _CANCELED) if is_canceled else ("FAILED", _RESTARTED)
    if put.failure is not None:
        return "FAILED", (put.failure.code, put.failure.message)
    if not put.is_over:
        return "FAILED", _CRASHED
    if put.is_canceled:
        return "CANCELLED", _CANCELED
    return "COMPLETED_WITH_ERRORS" if put.progress.failed_items else "COMPLETED", None

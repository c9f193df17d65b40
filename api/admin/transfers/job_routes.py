"""Jobs on the admin listener: imports, exports and bulk operations.

``GET /jobs`` lists those of the last 90 days, and ``DELETE /jobs/<id>`` cancels one. A canceled
import leaves no table. A canceled export is FAILED. A canceled bulk operation leaves the items that
it has put.
"""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web

from dynactor.actors.database.database import Database
from dynactor.actors.restores.restore_phases import CancelImport
from dynactor.actors.runtime.mailbox import MailboxClosed
from dynactor.actors.transfers.bulk_operations import BulkOperations, CancelBulkOperation
from dynactor.actors.transfers.table_exports import CancelExport, TableExports
from dynactor.actors.transfers.table_imports import TableImports
from dynactor.api.admin.answers import fault, json_answer, other_method, refused
from dynactor.api.admin_api.job_messages import JOBS_PATH, JobAnswer, JobsAnswer
from dynactor.model.errors import DynamoDBError
from dynactor.model.transfers.bulk_operation import BulkOperation
from dynactor.model.transfers.table_export import TableExport
from dynactor.model.transfers.table_import import TableImport


async def answer(database: Database, request: web.BaseRequest) -> web.Response:
    """Answer a request for one of the paths below ``/jobs``."""
    job_id = request.path.removeprefix(JOBS_PATH).strip("/")
    methods = "DELETE" if job_id else "GET, HEAD"
    if request.method not in methods.split(", "):
        return other_method(request.path, methods)
    if not job_id:
        return json_answer(HTTPStatus.OK, JobsAnswer(_all(database)))
    try:
        canceled = await _canceled(database, job_id)
    except DynamoDBError as error:
        # A job may have been forgotten a moment ago.
        return refused(error)
    except MailboxClosed:
        return fault(HTTPStatus.SERVICE_UNAVAILABLE, "The server is stopping")
    if canceled is None:
        return fault(HTTPStatus.NOT_FOUND, f"There is no job {job_id}")
    return json_answer(HTTPStatus.OK, canceled)


def _all(database: Database) -> list[JobAnswer]:
    jobs = [
        *map(_import, database.part(TableImports).imports),
        *map(_export, database.part(TableExports).exports),
        *map(_bulk_operation, database.part(BulkOperations).operations),
    ]
    return sorted(jobs, key=lambda job: job.id, reverse=True)


async def _canceled(database: Database, job_id: str) -> JobAnswer | None:
    if database.part(TableImports).find(job_id) is not None:
        return _import(await database.ask(CancelImport(job_id)))
    if database.part(TableExports).find(job_id) is not None:
        return _export(await database.ask(CancelExport(job_id)))
    if database.part(BulkOperations).find(job_id) is not None:
        return _bulk_operation(await database.ask(CancelBulkOperation(job_id)))
    return None


def _import(found: TableImport) -> JobAnswer:
    return JobAnswer(
        found.import_id,
        "import",
        found.table_name,
        found.status,
        found.began_epoch_seconds,
        found.ended_epoch_seconds,
        found.counts.processed_items,
        found.failure_message,
    )


def _export(found: TableExport) -> JobAnswer:
    return JobAnswer(
        found.export_id,
        "export",
        found.table_name,
        found.status,
        found.began_epoch_seconds,
        found.ended_epoch_seconds,
        found.item_count,
        found.failure_message,
    )


def _bulk_operation(found: BulkOperation) -> JobAnswer:
    return JobAnswer(
        found.operation_id,
        "bulk-operation",
        found.table_name,
        found.status,
        found.began_epoch_seconds,
        found.ended_epoch_seconds,
        found.progress.processed_items,
        found.failure_message,
    )

"""Jobs on the admin listener: imports, exports and bulk operations.

``GET /jobs`` lists those of the last 90 days, and ``DELETE /jobs/<id>`` cancels one. A canceled
import leaves no table. A canceled export is FAILED. A canceled bulk operation leaves its items.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TypeAlias

from aiohttp import web

from dynactor.actors.database.database import Database
from dynactor.actors.restores.restore_phases import CancelImport
from dynactor.actors.runtime.mailbox import MailboxClosed
from dynactor.actors.transfers.bulk_operations import BulkOperations, CancelBulkOperation
from dynactor.actors.transfers.table_exports import CancelExport, TableExports
from dynactor.actors.transfers.table_imports import TableImports
from dynactor.api.admin.answers import fault, json_answer, other_method, refused
from dynactor.api.admin_api.job_messages import JOBS_PATH, JobAnswer, JobKind, JobsAnswer
from dynactor.model.errors import DynamoDBError
from dynactor.model.transfers.bulk_operation import BulkOperation
from dynactor.model.transfers.table_export import TableExport
from dynactor.model.transfers.table_import import TableImport

_Job: TypeAlias = TableImport | TableExport | BulkOperation


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
    jobs: tuple[_Job, ...] = (
        *database.part(TableImports).imports,
        *database.part(TableExports).exports,
        *database.part(BulkOperations).operations,
    )
    return sorted(map(_shown, jobs), key=lambda job: job.id, reverse=True)


async def _canceled(database: Database, job_id: str) -> JobAnswer | None:
    job: _Job
    if database.part(TableImports).find(job_id) is not None:
        job = await database.ask(CancelImport(job_id))
    elif database.part(TableExports).find(job_id) is not None:
        job = await database.ask(CancelExport(job_id))
    elif database.part(BulkOperations).find(job_id) is not None:
        job = await database.ask(CancelBulkOperation(job_id))
    else:
        return None
    return _shown(job)


def _shown(job: _Job) -> JobAnswer:
    kind: JobKind
    match job:
        case TableImport(import_id=job_id):
            kind, items = "import", job.counts.processed_items
        case TableExport(export_id=job_id):
            kind, items = "export", job.item_count
        case BulkOperation(operation_id=job_id):
            kind, items = "bulk-operation", job.progress.processed_items
    began, ended = job.began_epoch_seconds, job.ended_epoch_seconds
    return JobAnswer(
        job_id, kind, job.table_name, job.status, began, ended, items, job.failure_message
    )

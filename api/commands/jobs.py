"""The command ``dynactor jobs``: lists and cancels imports, exports and bulk operations."""

from __future__ import annotations

import sys
from typing import Final, TypeVar
from urllib.parse import quote

from cyclopts import App

from dynactor.api.admin_api.job_messages import JOBS_PATH, JobAnswer, JobsAnswer
from dynactor.api.admin_api.times import iso_time
from dynactor.api.clients.tables_address import TablesAddress

AnswerT = TypeVar("AnswerT")

_IN_PROGRESS: Final = ("IN_PROGRESS", "CANCELLING")

jobs = App(
    name="jobs",
    help="List or cancel the imports, exports and bulk operations of a server.",
    help_format="markdown",
)


@jobs.command(name="list")
def list_jobs(*, all: bool = False, server: TablesAddress | None = None) -> None:  # noqa: A002
    """List the jobs in progress.

    Parameters
    ----------
    all
        List the jobs that have ended in the last 90 days, too.
    """
    found = _ask(server, "GET", JOBS_PATH, JobsAnswer).jobs
    for job in found:
        if all or job.status in _IN_PROGRESS:
            sys.stdout.write(_line(job))


@jobs.command
def cancel(job: str, /, *, server: TablesAddress | None = None) -> None:
    """Cancel a job.

    A canceled import leaves no table. A canceled export is FAILED. A canceled bulk operation leaves
    the items that it has put.

    Parameters
    ----------
    job
        The id of the job, which is also the end of its ARN.
    """
    job_id = quote(job.rpartition("/")[2], safe="")
    sys.stdout.write(_line(_ask(server, "DELETE", f"{JOBS_PATH}/{job_id}", JobAnswer)))


def _ask(
    server: TablesAddress | None, method: str, path: str, answer_type: type[AnswerT]
) -> AnswerT:
    # No timeout, because a job that stops may first have to write what it has read.
    client = (server or TablesAddress()).admin_client()
    return client.ask(method, path, answer_type, timeout_seconds=None)


def _line(job: JobAnswer) -> str:
    problem = "" if job.problem is None else f", {job.problem}"
    return (
        f"{job.id} {job.kind} of {job.table}: {job.status}, {job.items:,} items, "
        f"since {iso_time(job.start)}{problem}\n"
    )

"""The answers of the admin listener's paths for jobs."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

JOBS_PATH: Final = "/jobs"

JobKind: TypeAlias = Literal["import", "export", "bulk-operation"]


class JobAnswer(Struct, frozen=True):
    """An import, an export or a bulk operation. ``items`` are those that were processed so far."""

    id: str
    kind: JobKind
    table: str
    status: str
    start: float
    end: float | None
    items: int
    problem: str | None


class JobsAnswer(Struct, frozen=True):
    """The jobs of the last 90 days, the newest first."""

    jobs: list[JobAnswer]

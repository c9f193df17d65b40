"""The header of a read of a table as it was at a time.

A table's definition, its permissions and its limits are those of the present.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Final

from msgspec import structs

from dynactor.actors.backups.past_view import PastView
from dynactor.actors.table.pages import ReadRange, read_past_page
from dynactor.actors.table.table import Table
from dynactor.api.requests.call import Call, InputT
from dynactor.model.errors import ValidationException
from dynactor.model.reads.page import Page

# In lower case, as the names of a call's headers.
HEADER: Final = "x-dynactor-as-of"

# The header's name in messages and answers.
NAME: Final = "X-Dynactor-As-Of"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def dated(call: Call[InputT]) -> Call[InputT]:
    """The call with the time of its header; raises ``ValidationException`` without one."""
    return structs.replace(call, as_of_epoch_seconds=_epoch_seconds(call.headers[HEADER]))


def unsupported(operation: str) -> ValidationException:
    """The error of an operation that can't read past states."""
    return ValidationException(
        f"{operation} does not support the header {NAME}: use GetItem, BatchGetItem, Query or Scan"
    )


def answer_headers(call: Call[InputT]) -> dict[str, str]:
    """The header of the answer, with the same time. It shows that the server knows the header."""
    return {NAME: call.headers[HEADER].strip()}


def refuse_consistent(*, consistent: bool | None) -> None:
    """Refuse a consistent read of a past state, which always is; raises ``ValidationException``."""
    if consistent:
        raise ValidationException(f"ConsistentRead is not supported with the header {NAME}")


async def read_page(call: Call[InputT], table: Table, read: ReadRange) -> Page:
    """One page of a Query or Scan of a past state.

    Raises ``ValidationException`` for a global index or a strongly consistent read, ``Throttled``
    if the first partition has no read units left, or as ``PastReads.at``.
    """
    refuse_consistent(consistent=read.consistent)
    if read.index is not None and table.definition.local_index(read.index.name) is None:
        raise ValidationException(
            f"Global secondary indexes are not supported with the header {NAME}: {read.index.name}"
        )
    async with past_views(call, [table]) as (past,):
        return await read_past_page(table, read, past)


def past_views(
    call: Call[InputT], tables: Sequence[Table]
) -> AbstractAsyncContextManager[list[PastView]]:
    """Views of tables at the time of the call, which is a read of a past state."""
    assert call.as_of_epoch_seconds is not None
    return call.database.past_reads.at(call.as_of_epoch_seconds, tables)


def _epoch_seconds(text: str) -> float:
    text = text.strip()
    try:
        if _TIME.fullmatch(text):
            return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        # The text has the form of a time, and there is no such day or hour.
        pass
    raise ValidationException(
        f"The header {NAME} must be a time with its zone, such as 2026-11-22T10:00:00Z"
    )

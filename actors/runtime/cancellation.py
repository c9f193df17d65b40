"""Which cancellations are meant for a task, and which only stray into it.

Whoever awaits a future that somebody else has cancelled is told so as if it were cancelled itself.
In a child of a task group that is dangerous: one that ends so silently cancels its group.
"""

from __future__ import annotations

import asyncio


def is_cancellation(error: BaseException) -> bool:
    """Whether an error that was just caught cancels this task, and is no failure of its work."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0

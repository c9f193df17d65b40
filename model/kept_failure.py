"""Keeps the exception of a block inside of task groups, and raises it outside of them."""

from __future__ import annotations


class KeptFailure:
    """An exception that no task group wraps in an ExceptionGroup.

    A block that fails does not cancel the group either, so the block's ``finally`` must end the
    group's tasks:

        kept = KeptFailure()
        async with anyio.create_task_group() as group:
            group.start_soon(serve, stopped)
            with kept:
                try:
                    yield
                finally:
                    stopped.set()
        kept.raise_again()

    Cancellations are not kept.
    """

    def __init__(self) -> None:
        self._failure: Exception | None = None

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self,
        kind: object,
        error: BaseException | None,
        traceback: object,
    ) -> bool:
        """End the block, and keep its exception."""
        if not isinstance(error, Exception):
            return False
        self._failure = error
        return True

    @property
    def is_failed(self) -> bool:
        """Whether the block has failed."""
        return self._failure is not None

    def raise_again(self) -> None:
        """Raise the exception of the block, if it failed."""
        if self._failure is not None:
            raise self._failure

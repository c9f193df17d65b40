"""Threads that write to a server until they are stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

WRITERS: Final = 3


class WriterThreads:
    """Threads that write while ``is_stopping`` is not set, and notify ``changed`` after a write."""

    def __init__(self) -> None:
        self.is_stopping = False
        self.changed = threading.Condition()

    @contextmanager
    def running(self, *writes: Callable[[], None]) -> Iterator[None]:
        """Run each function in a thread within the context; they end after their request."""
        threads = [threading.Thread(target=write) for write in writes]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_stopping = True
            for thread in threads:
                thread.join()

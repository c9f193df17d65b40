"""The access key of the request that a task executes, for the records of its changes."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

# Empty without access keys, and for changes that no client requests.
CALLER: Final[ContextVar[str]] = ContextVar("caller", default="")

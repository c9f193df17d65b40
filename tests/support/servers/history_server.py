"""The server with a slow store: ``python -m tests.support.servers.history_server serve …``.

It takes the arguments of ``dynactor``. An environment variable has its faults, a ``StoreFaults`` as
JSON.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import Struct

import dynactor.api.command_line as entry
from dynactor.api.hosting import open_store
from dynactor.api.hosting.open_postgresql import open_postgresql
from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Store
from tests.support.histories.history_bugs import STORES, Bug, answer_before_the_decision
from tests.support.stores.history_store import DelayedStore, Delays

MODULE: Final = "tests.support.servers.history_server"
_VARIABLE: Final = "HISTORY_FAULTS"


class StoreFaults(Struct, frozen=True):
    """The faults of a server's store. The same seed gives the same sequence of delays."""

    seed: int
    most_delay_milliseconds: float = 50
    bug: Bug | None = None

    def environment(self) -> Mapping[str, str]:
        """The environment variable for the server's process."""
        return {_VARIABLE: msgspec.json.encode(self).decode()}


def _main() -> None:
    faults = msgspec.json.decode(os.environ[_VARIABLE], type=StoreFaults)
    if faults.bug == "answer before its decision":
        answer_before_the_decision()
    kind = STORES.get(faults.bug, DelayedStore) if faults.bug else DelayedStore
    delays = Delays(faults.seed, faults.most_delay_milliseconds / 1000)

    async def open_delayed(directory: Path, options: RocksOptions) -> Store:
        return kind(await open_rocks(directory, options), delays)

    @asynccontextmanager
    async def open_delayed_postgresql(*arguments: Any) -> AsyncIterator[Store]:
        async with open_postgresql(*arguments) as inner:
            yield kind(inner, delays)

    # Replace the functions that open stores, because the product has no option for delayed stores.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_store, "open_rocks", open_delayed)
        patch.setattr(open_store, "open_postgresql", open_delayed_postgresql)
        entry.main()


if __name__ == "__main__":
    _main()

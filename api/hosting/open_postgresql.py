"""Opening the store in PostgreSQL, whose driver is an extra."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING

from dynactor.storage.store import CannotOpen, Store

if TYPE_CHECKING:
    from dynactor.storage.postgresql.members import PostgresqlMembers
    from dynactor.storage.postgresql.store import OwnedStore


def open_postgresql(url: str, read_url: str | None = None) -> AbstractAsyncContextManager[Store]:
    """The store in a database; ``read_url`` is that of a standby for reads.

    Raises ``CannotOpen`` if the driver is missing.
    """
    with _needing_driver():
        from dynactor.storage.postgresql import store  # noqa: PLC0415
    return store.open_postgresql(url, read_url)


def open_shared_postgresql(
    url: str, read_url: str | None, taken_over: Callable[[], None]
) -> AbstractAsyncContextManager[OwnedStore]:
    """The store in a database that other nodes use too, if none of them owns it now.

    ``taken_over`` is called when another node has become the owner.
    """
    with _needing_driver():
        from dynactor.storage.postgresql import store  # noqa: PLC0415
    return store.open_postgresql(
        url, read_url, lock_seconds=0, taken_over=taken_over, is_shared=True
    )


def open_share(
    url: str, read_url: str | None, taken_over: Callable[[], None]
) -> AbstractAsyncContextManager[OwnedStore]:
    """The store of a node that is the home of some tables.

    ``taken_over`` is called when the leader has taken the tables.
    """
    with _needing_driver():
        from dynactor.storage.postgresql import store  # noqa: PLC0415
    return store.open_share(url, read_url, taken_over=taken_over)


async def open_members(url: str, name: str, address: str, version: str) -> PostgresqlMembers:
    """The nodes that share a database, and the row of this node; raises ``CannotOpen``."""
    with _needing_driver():
        from dynactor.storage.postgresql import members  # noqa: PLC0415
    return await members.open_members(url, name, address, version)


@contextmanager
def _needing_driver() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise CannotOpen(
            f"--store needs {error.name}: install it by pip install 'dynactor[postgresql]'"
        ) from error

"""Opening the store in PostgreSQL, whose driver is an extra."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from dynactor.storage.store import CannotOpen, Store


def open_postgresql(url: str, read_url: str | None = None) -> AbstractAsyncContextManager[Store]:
    """The store in a database; ``read_url`` is that of a standby for reads.

    Raises:
        CannotOpen: the driver is missing.
    """
    try:
        from dynactor.storage.postgresql import store as postgresql_store  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CannotOpen(
            f"--store needs {error.name}: install it by pip install 'dynactor[postgresql]'"
        ) from error
    return postgresql_store.open_postgresql(url, read_url)

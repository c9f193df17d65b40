"""The key that seals session tokens. It is in the store, so all servers of the data have it."""

from __future__ import annotations

from secrets import token_bytes
from typing import Final

from dynactor.storage import key_layout
from dynactor.storage.store import Conflict, Full, Group, Store

_KEY_BYTES: Final = 32


async def session_key(store: Store) -> bytes:
    """The key of the store, which is made at the first start; raises ``StoreError``."""
    while True:
        (row,) = await store.latest.load([key_layout.SESSION_KEY])
        if row is not None:
            return row
        try:
            key = token_bytes(_KEY_BYTES)
            await (await store.commit([Group(key_layout.SESSION_KEY, None, key)]))
        except Conflict:
            # Another server has made the key.
            continue
        except Full:
            # The server starts on a full disk, to delete items. Its sessions end with the server.
            return key
        return key

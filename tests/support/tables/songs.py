"""A small table of songs with indexes, for tests of PartiQL statements that read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from tests.support.clients.clients import WireClient
from tests.support.tables.partiql import typed
from tests.support.tables.tables import global_index, local_index, table

# Tables of cases in tests name an artist or a song by the first letter.
SONGS: tuple[dict[str, Any], ...] = (
    {
        "artist": "Acme",
        "song": "Alpha",
        "album": "One",
        "genre": "rock",
        "plays": 10,
        "tags": {"live", "new"},
        "details": {"label": "L1", "years": [1999, 2001]},
    },
    {
        "artist": "Acme",
        "song": "Beta",
        "album": "Two",
        "genre": "rock",
        "plays": 25,
        "tags": {"new"},
        "details": {"label": "L2", "years": [2003]},
    },
    {
        "artist": "Acme",
        "song": "Gamma",
        "album": "One",
        "genre": "jazz",
        "plays": 5,
        "remix": None,
        "details": {"label": "L1", "years": []},
    },
    {"artist": "Acme", "song": "Omega", "plays": 40, "rated": True, "note": "it's"},
    {
        "artist": "Bolt",
        "song": "Alpha",
        "album": "Zero",
        "genre": "rock",
        "plays": 7,
        "tags": {"live"},
    },
    {"artist": "Bolt", "song": "Delta", "genre": "jazz", "plays": 30, "cover": b"\x89PNG"},
    {
        "artist": "Cora",
        "song": "Beta",
        "album": "One",
        "genre": "pop",
        "plays": 25,
        "ratings": {1, Decimal("2.5")},
    },
)


@contextmanager
def songs_table(wire: WireClient) -> Iterator[str]:
    """Create the table with all songs, and wait until its global indexes have all entries.

    ``by-album`` is a local index that projects only keys. ``by-genre`` and ``by-genre-keys`` are
    global indexes by genre and plays; the first projects all attributes, the second only keys.
    """
    with table(
        wire,
        *("artist:S", "song:S", "album:S", "genre:S", "plays:N"),
        indexes=(local_index("by-album", "artist", "album", "KEYS_ONLY"),),
        GlobalSecondaryIndexes=[
            global_index("by-genre", "genre", "plays"),
            global_index("by-genre-keys", "genre", "plays", projection="KEYS_ONLY"),
        ],
    ) as name:
        for song in SONGS:
            wire("PutItem", {"TableName": name, "Item": typed(song)})
        in_index = sum("genre" in song for song in SONGS)
        for index in ("by-genre", "by-genre-keys"):
            count = {"TableName": name, "IndexName": index, "Select": "COUNT"}
            while wire("Scan", count)["Count"] < in_index:
                continue
        yield name

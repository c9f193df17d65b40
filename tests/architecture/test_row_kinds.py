"""``storage/key_layout.py`` lists every kind of row, and no other module makes keys."""

from __future__ import annotations

import re
from typing import Final

import pytest

from dynactor.storage import key_layout
from tests.architecture.sources import PROJECT, SOURCES, text_of

# Ends of ranges and of parts of a key.
ENDS: Final = ("_END",)
# The first bytes of keys in a literal, such as ``b"\x05"``.
KEY_LITERAL: Final = re.compile(r'b"\\x(0[1-9a-f]|1[0-9a-f])')
# Other bytes that look like the start of a key.
OTHER_BYTES: Final = {
    "dynactor.actors.backups.listed_changes": "the end of a position",
    "dynactor.storage.buckets.decompression": "the first bytes of compressed files",
}


def prefixes() -> dict[str, bytes]:
    """The starts of keys, by the names of their constants."""
    return {
        name: value
        for name, value in vars(key_layout).items()
        if isinstance(value, bytes) and not name.endswith(ENDS)
    }


def listed() -> list[tuple[bytes, set[str]]]:
    """The first byte of each row of the table, and the texts after it."""
    found = []
    for line in (key_layout.__doc__ or "").splitlines():
        if line.startswith("| ``"):
            first, *texts = re.findall(r"``([^`]+)``", line.split("|")[1])
            found.append((bytes.fromhex(first), set(texts)))
    return found


@pytest.mark.parametrize("name", prefixes())
def test_the_table_lists_the_rows_of_each_prefix(name: str):
    first, rest = prefixes()[name][:1], prefixes()[name][1:].decode()
    rows = [texts for byte, texts in listed() if byte == first]
    assert rows, f"no row of the table begins with {first.hex()}"
    assert not rest or any(rest in texts for texts in rows)


def test_each_row_of_the_table_has_a_prefix():
    known = {prefix[:1] for prefix in prefixes().values()} | {bytes([key_layout._NAMESPACE])}
    assert {byte for byte, _ in listed()} == known


def test_no_other_module_of_the_server_spells_a_prefix():
    folders = ("actors", "storage", "streams")
    spelled = {
        module
        for module, path in SOURCES.items()
        if path.relative_to(PROJECT).parts[0] in folders
        and module != key_layout.__name__
        and KEY_LITERAL.search(text_of(path))
    }
    assert spelled == OTHER_BYTES.keys()

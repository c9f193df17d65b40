"""Finds the documentation's pages, and the programs in them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tests.support.servers.server import PROJECT

DOCS = PROJECT / "docs"
# The endpoint in the examples.
ENDPOINT = "http://127.0.0.1:8000"

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)


def pages() -> list[Path]:
    """Every Markdown page, in the project's root and in docs/."""
    return sorted([*PROJECT.glob("*.md"), *DOCS.rglob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a language, in the order of the page."""
    return [body for found, body in _all_blocks(page.read_text()) if found == language]


def without_blocks(text: str) -> str:
    """A page's text without code blocks."""
    return re.sub(r"`[^`\n]+`", "`code`", _BLOCK.sub("", text))


def examples(page: Path) -> dict[str, str]:
    """The Python blocks by the name in the comment above: ``<!-- example: name -->``."""
    found = re.findall(
        r"^<!-- example: (.+?) -->\n```python\n(.*?)^```$",
        page.read_text(),
        re.MULTILINE | re.DOTALL,
    )
    named = dict(found)
    assert len(named) == len(found), "two examples of one name"
    return named


def _all_blocks(text: str) -> Iterator[tuple[str, str]]:
    for found in _BLOCK.finditer(text):
        yield found["language"], textwrap.dedent(found["body"])

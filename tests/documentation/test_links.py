"""The targets of links between pages exist, anchors included."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.support.documentation.pages import DOCS, pages, without_blocks
from tests.support.servers.server import PROJECT

LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and the site make them."""
    told = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    slugs: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ (.+)$", told, re.MULTILINE):
        text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.add(f"{slug}-{slugs[slug]}" if slugs[slug] else slug)
        slugs[slug] += 1
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_of_a_page_has_an_existing_target(page: Path):
    links = LINK.findall(without_blocks(page.read_text()))
    dead = []
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


def test_every_page_can_be_reached_from_the_readme():
    seen: set[Path] = set()
    waiting = [PROJECT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or not page.is_file():
            continue
        seen.add(page)
        links = LINK.findall(without_blocks(page.read_text())) if page.suffix == ".md" else []
        waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links]
    assert set(DOCS.rglob("*.md")) - seen == set()


def test_the_glossary_is_short_and_has_each_term_once():
    rows = re.findall(r"^\| ([a-z][^|]*) \|", (DOCS / "GLOSSARY.md").read_text(), re.MULTILINE)
    assert len(rows) <= 60
    assert len(set(rows)) == len(rows)

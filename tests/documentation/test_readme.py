"""The README has at most its maximum length, and its boto3 example works."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.support.documentation.pages import DOCS, ENDPOINT, blocks
from tests.support.servers.server import PROJECT, running_server

README = PROJECT / "README.md"
MOST_LINES = 150
# Words that people use to search for such a server.
SEARCHED = (
    "PartiQL",
    "transactions",
    "DynamoDB Streams",
    "TTL",
    "GSI",
    "CDC",
    "Kafka",
    "Docker",
    "authentication",
    "PITR",
)


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= MOST_LINES


def test_the_readme_has_the_words_that_people_search_for():
    text = README.read_text().lower()
    assert [word for word in SEARCHED if word.lower() not in text] == []


def test_the_boto3_example_works_when_pasted():
    [tour] = blocks(README, "python")
    assert len([line for line in tour.splitlines() if line]) == 12
    with running_server() as server:
        pasted = tour.replace(ENDPOINT, server.endpoint)
        command = [sys.executable, "-c", pasted]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{'Artist': 'Björk', 'Albums': Decimal('10')}\n"


def cells_of(text: str, heading: str) -> dict[tuple[str, str], str]:
    """The cells of the first table below a heading, by row and column, without footnotes."""
    table = re.search(r"^\|.*(?:\n\|.*)+", text[text.index(heading) :], re.MULTILINE)
    assert table is not None
    plain = re.sub(r"\[\^[^\]]+\]", "", table[0])
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in plain.splitlines()]
    head, _, *body = rows
    # Identify a column by its server's name, without a version.
    servers = [re.sub(r" \d[\d.]*(?:, server)?$", "", name) for name in head]
    return {
        (row[0], server): cell
        for row in body
        for server, cell in zip(servers[1:], row[1:], strict=True)
    }


def test_the_comparison_in_the_readme_agrees_with_the_full_comparison():
    short = cells_of(README.read_text(), "## Comparison")
    long = cells_of((DOCS / "COMPARISON.md").read_text(), "# Comparison")
    assert len(short) > 40
    assert {cell: text for cell, text in short.items() if long.get(cell) != text} == {}

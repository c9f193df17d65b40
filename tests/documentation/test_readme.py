"""The README keeps its word: its length, and its lines of boto3."""

from __future__ import annotations

import subprocess
import sys

from tests.support.documentation.pages import ENDPOINT, blocks
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


def test_the_twelve_lines_work_when_pasted():
    [tour] = blocks(README, "python")
    assert len([line for line in tour.splitlines() if line]) == 12
    with running_server() as server:
        pasted = tour.replace(ENDPOINT, server.endpoint)
        command = [sys.executable, "-c", pasted]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{'Artist': 'Björk', 'Albums': Decimal('10')}\n"

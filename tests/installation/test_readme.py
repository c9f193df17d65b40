"""The README keeps its word: the tour works when pasted, the options are all there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from codeop import compile_command
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from dynactor.api.serve.kafka_options import KafkaOptions
from dynactor.api.serve.options import ServeOptions
from tests.support.clients.clients import boto3_client
from tests.support.servers.server import PROJECT, Server, running_server

README = (PROJECT / "README.md").read_text()
ENDPOINT = "http://127.0.0.1:8000"


BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
[EXPLAINED] = re.findall(
    r"```python\n(.*?)```", (PROJECT / "docs" / "EXPLAIN.md").read_text(), re.DOTALL
)


def printed(block: str, server: Server) -> list[str]:
    """The lines that a piece of Python prints when it is pasted."""
    assert ENDPOINT in block
    command = [sys.executable, "-c", block.replace(ENDPOINT, server.endpoint)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


def explained_by_curl(server: Server) -> bool:
    """Whether the guide's curl has the answer that stands below it."""
    guide = (PROJECT / "docs" / "EXPLAIN.md").read_text()
    [(command, expected)] = re.findall(
        r"```console\n\$ (.*?) \| grep \w+\n(.*?)\n```", guide, re.DOTALL
    )
    words = shlex.split(command.replace("\\\n", ""))
    headers = dict(words[at + 1].split(": ") for at, word in enumerate(words) if word == "-H")
    body = words[words.index("-d") + 1]
    request = Request(server.endpoint, body.encode(), headers)  # noqa: S310 - it is the server's
    with urlopen(request) as answer:  # noqa: S310
        name, _, explanation = expected.partition(": ")
        return bool(answer.headers[name] == explanation)


def test_the_tour_works_when_pasted_and_its_table_outlives_the_server(tmp_path: Path):
    tour, statements, transactions, _, added_index, *_ = BLOCKS
    with running_server(data_dir=tmp_path / "data") as server:
        *threads, capacity = printed(tour, server)
        assert threads
        assert all(re.match(r"2026-01-2\d thread \d{3} \d+ \{'old'\}", line) for line in threads)
        assert "LocalSecondaryIndexes" in capacity
        server.stop()
    with (
        running_server(data_dir=tmp_path / "data") as server,
        closing(boto3_client(server.endpoint)) as client,
    ):
        assert client.describe_table(TableName="Thread")["Table"]["ItemCount"] == 100
        assert printed(statements, server) == [
            "[{'Subject': {'S': 'First'}, 'Replies': {'N': '2'}}]"
        ]
        assert printed(transactions, server) == [
            "['ConditionalCheckFailed', 'None']",
            "['1', '7']",
        ]
        [explanation] = printed(EXPLAINED, server)
        assert "'Bytes': 67, 'Blocks': 1, 'Consistent': False, 'Units': 0.5" in explanation
        assert explained_by_curl(server)
        *states, one, two, three = printed(added_index, server)
    assert states[-1] == "ACTIVE Backfilling: None"
    assert sorted((one, two, three)) == [f"EC2 thread 0{n} {n}" for n in (19, 47, 75)]


def test_the_changes_of_a_stream_are_printed_when_pasted(tmp_path: Path):
    _, _, _, stream, *_ = BLOCKS
    with running_server(data_dir=tmp_path / "data") as server:
        lines = printed(stream, server)
    assert [line.split()[0] for line in lines] == ["INSERT", "MODIFY", "REMOVE"]


def test_the_item_that_expires_goes_when_pasted(tmp_path: Path):
    *_, expiring, _, _ = BLOCKS
    with running_server(data_dir=tmp_path / "data") as server:
        assert printed(expiring, server) == ["long is left"]


def test_the_item_that_was_backed_up_is_restored_when_pasted(tmp_path: Path):
    *_, backed_up = BLOCKS
    with running_server(data_dir=tmp_path / "data") as server:
        lines = printed(backed_up, server)
    assert lines == ["[{'Id': {'S': '1'}, 'Balance': {'N': '100'}}]"]


@pytest.mark.parametrize("block", [*BLOCKS, EXPLAINED])
def test_pythons_prompt_takes_what_is_pasted_line_by_line(block: str):
    waiting: list[str] = []
    for line in [*block.splitlines(), ""]:
        waiting.append(line)
        # None where more lines are to come. Up to Python 3.12 only an empty one ends a block.
        if compile_command("\n".join(waiting)) is not None:
            waiting.clear()
    assert not waiting


def test_every_option_stands_in_the_readme():
    shown = set(re.findall(r"^\| `--([a-z-]+)`", README, re.MULTILINE))
    of_server = {field.name for field in fields(ServeOptions)} - {"kafka"}
    options = of_server | {field.name for field in fields(KafkaOptions)}
    assert shown == {option.replace("_", "-") for option in options}

"""The tutorial works when its code blocks are pasted, one after the other."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from codeop import compile_command
from contextlib import closing
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.support.clients.clients import boto3_client
from tests.support.documentation.pages import DOCS, ENDPOINT, blocks, examples
from tests.support.servers.server import PROJECT, Server, running_server

TUTORIAL = DOCS / "TUTORIAL.md"
EXAMPLES = examples(TUTORIAL)
CLIENT, *_ = blocks(TUTORIAL, "python")
EXPLAIN = DOCS / "EXPLAIN.md"
[EXPLAINED] = blocks(EXPLAIN, "python")
[COPIED] = blocks(DOCS / "LOCALSTACK.md", "python")


def printed(block: str, server: Server, folder: Path) -> list[str]:
    """The lines that a Python block of the tutorial prints in the folder of ``client.py``."""
    assert ENDPOINT in CLIENT
    (folder / "client.py").write_text(CLIENT.replace(ENDPOINT, server.endpoint))
    done = subprocess.run(
        # Bytecode of an earlier client.py would be used if both were written in the same second.
        [sys.executable, "-B", "-c", block.replace(ENDPOINT, server.endpoint)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def is_explained_by_curl(server: Server) -> bool:
    """Whether the curl command of the page about costs has the answer shown below the command."""
    [(command, expected)] = re.findall(
        r"```console\n\$ (.*?) \| grep \w+\n(.*?)\n```", EXPLAIN.read_text(), re.DOTALL
    )
    words = shlex.split(command.replace("\\\n", ""))
    headers = dict(words[at + 1].split(": ") for at, word in enumerate(words) if word == "-H")
    body = words[words.index("-d") + 1]
    request = Request(server.endpoint, body.encode(), headers)  # noqa: S310 - it is the server's
    with urlopen(request) as answer:  # noqa: S310
        name, _, explanation = expected.partition(": ")
        return bool(answer.headers[name] == explanation)


def test_every_code_block_has_a_name_and_is_run():
    assert CLIENT.startswith("# client.py\n")
    assert len(blocks(TUTORIAL, "python")) == 1 + len(EXAMPLES)
    source = Path(__file__).read_text()
    assert [name for name in EXAMPLES if f'EXAMPLES["{name}"]' not in source] == []


def test_the_table_of_threads_works_and_exists_after_a_restart(tmp_path: Path):
    with running_server(data_dir=tmp_path / "data") as server:
        assert printed(EXAMPLES["create"], server, tmp_path) == []
        assert printed(EXAMPLES["write"], server, tmp_path) == []
        *threads, capacity = printed(EXAMPLES["query"], server, tmp_path)
        assert threads
        assert all(re.match(r"2026-01-2\d thread \d{3} \d+ \{'old'\}", line) for line in threads)
        assert "LocalSecondaryIndexes" in capacity
        server.stop()
    with (
        running_server(data_dir=tmp_path / "data") as server,
        closing(boto3_client(server.endpoint)) as client,
    ):
        assert client.describe_table(TableName="Thread")["Table"]["ItemCount"] == 100
        assert printed(EXAMPLES["partiql"], server, tmp_path) == [
            "[{'Subject': 'First', 'Replies': Decimal('2')}]"
        ]
        assert printed(EXAMPLES["transaction"], server, tmp_path) == [
            "['ConditionalCheckFailed', 'None']",
            "[Decimal('1'), Decimal('7')]",
        ]
        [explanation] = printed(EXPLAINED, server, tmp_path)
        assert "'Bytes': 67, 'Blocks': 1, 'Consistent': False, 'Units': 0.5" in explanation
        assert is_explained_by_curl(server)
        *states, one, two, three = printed(EXAMPLES["index"], server, tmp_path)
    assert states[-1] == "ACTIVE Backfilling: None"
    assert sorted((one, two, three)) == [f"EC2 thread 0{n} {n}" for n in (19, 47, 75)]


def test_the_changes_of_a_stream_are_printed(tmp_path: Path):
    with running_server() as server:
        lines = printed(EXAMPLES["stream"], server, tmp_path)
    assert [line.split()[0] for line in lines] == ["INSERT", "MODIFY", "REMOVE"]


def test_the_expired_item_is_deleted(tmp_path: Path):
    with running_server() as server:
        assert printed(EXAMPLES["expiry"], server, tmp_path) == ["long is left"]


def test_the_item_that_was_backed_up_is_restored(tmp_path: Path):
    with running_server() as server:
        lines = printed(EXAMPLES["backup"], server, tmp_path)
    assert lines == ["[{'Id': '1', 'Balance': Decimal('100')}]"]


def test_a_table_is_copied_from_another_server(tmp_path: Path):
    [readme] = blocks(PROJECT / "README.md", "python")
    [declared] = re.findall(r"http://127\.0\.0\.1:4566", COPIED)
    with running_server() as source, running_server() as target:
        printed(readme, source, tmp_path)
        printed(readme, target, tmp_path)
        with closing(boto3_client(target.endpoint)) as client:
            client.delete_item(TableName="Music", Key={"Artist": {"S": "Björk"}})
            printed(COPIED.replace(declared, source.endpoint), target, tmp_path)
            [item] = client.scan(TableName="Music")["Items"]
    assert item == {"Artist": {"S": "Björk"}, "Albums": {"N": "10"}}


@pytest.mark.parametrize("block", [CLIENT, *EXAMPLES.values(), EXPLAINED, COPIED])
def test_pythons_prompt_accepts_the_code_blocks_line_by_line(block: str):
    waiting: list[str] = []
    for line in [*block.splitlines(), ""]:
        waiting.append(line)
        # ``compile_command`` returns None for an incomplete block. Up to Python 3.12 an empty line
        # ends a block.
        if compile_command("\n".join(waiting)) is not None:
            waiting.clear()
    assert not waiting

"""ARCHITECTURE.md stays short, and agrees with the code."""

from __future__ import annotations

import ast
import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from rocksdict import AccessType, Options, Rdict

from tests.support.clients.clients import boto3_client
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers.server import PROJECT, running_server

PAGE = PROJECT / "ARCHITECTURE.md"
MOST_WORDS = 2_075
GONE = "gone"
# The heading of a table of phases: its machine, and the file that builds the machine's phases.
HEADING = re.compile(r"^(.+) \(`([\w/.]+)`\):\n\n((?:\|.*\n)+)", re.MULTILINE)


def machines() -> dict[str, tuple[Path, str]]:
    """The file and the table of each kind of subject with phases, as the page shows them."""
    found = {}
    for machine, path, table in HEADING.findall(PAGE.read_text()):
        [file] = (PROJECT / "actors").rglob(path.removeprefix("actors/"))
        found[machine] = (file, table)
    return found


def shown_phases(table: str) -> dict[str, set[str]]:
    """Each phase in a table of the page, with the phases that may follow."""
    rows = [row.strip("|").split("|") for row in table.splitlines()[2:]]
    return {
        cells[0].strip().strip("*"): set(filter(None, cells[3].strip().split(", ")))
        for cells in rows
    }


def names(source: ast.Module) -> dict[str, str]:
    """The string constants of a module, and GONE, which means that there is no phase."""
    constants = {
        node.targets[0].id: node.value.value
        for node in source.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    return constants | {"GONE": GONE}


def text_of(node: ast.expr, constants: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return constants[node.id]
    assert isinstance(node, ast.Constant)
    return str(node.value)


def built_phases(path: Path) -> dict[str, set[str]]:
    """Each phase of a machine, with the phases that may follow, as the code builds it."""
    source = ast.parse(path.read_text())
    constants = names(source)
    [table] = (
        node
        for node in ast.walk(source)
        if isinstance(node, ast.Dict)
        and node.values
        and all(isinstance(each, ast.Call) and is_phase(each) for each in node.values)
    )
    return {
        text_of(key, constants): following(value, constants)
        for key, value in zip(table.keys, table.values, strict=True)
        if key is not None
    }


def is_phase(call: ast.Call) -> bool:
    # A phase may name the type of its subjects, as in Phase[Table]().
    return ast.unparse(call.func).partition("[")[0] == "Phase"


def following(call: ast.expr, constants: dict[str, str]) -> set[str]:
    assert isinstance(call, ast.Call)
    if not call.args:
        return set()
    [then] = call.args[:1]
    assert isinstance(then, ast.Tuple)
    return {text_of(each, constants) for each in then.elts}


def test_the_page_can_be_read_in_an_hour():
    # A new part of the control plane may add a table of phases.
    assert len(HEADING.sub("", PAGE.read_text()).split()) <= MOST_WORDS


@pytest.mark.parametrize("machine", machines())
def test_a_table_of_phases_equals_that_of_its_state_machine(machine: str):
    path, table = machines()[machine]
    assert shown_phases(table) == built_phases(path)


def test_every_state_machine_has_a_table():
    built = {
        path
        for path in (PROJECT / "actors").rglob("*.py")
        if re.search(r": Phase\W", path.read_text())
    }
    assert built == {path for path, _ in machines().values()}


def test_every_named_file_and_folder_exists():
    named = re.findall(
        r"`((?:model|storage|streams|actors|api|tests|docs)/[\w/.]*)`", PAGE.read_text()
    )
    assert len(named) > 30
    assert [path for path in named if not (PROJECT / path).exists()] == []


def test_the_rows_of_the_example_equal_those_that_a_server_writes(tmp_path: Path):
    shown = re.findall(r"^\| [\w ]+ \| `([0-9a-f ]+)` \|", PAGE.read_text(), re.MULTILINE)
    wanted = {bytes.fromhex(key) for key in shown}
    assert len(wanted) == 6
    data = tmp_path / "data"
    with running_server("--partitions-per-table", "1", data_dir=data) as server:
        with closing(boto3_client(server.endpoint)) as client:
            client.create_table(
                TableName="Music",
                KeySchema=[{"AttributeName": "Artist", "KeyType": "HASH"}],
                AttributeDefinitions=[
                    {"AttributeName": "Artist", "AttributeType": "S"},
                    {"AttributeName": "Label", "AttributeType": "S"},
                ],
                GlobalSecondaryIndexes=[
                    {
                        "IndexName": "ByLabel",
                        "KeySchema": [{"AttributeName": "Label", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "KEYS_ONLY"},
                    }
                ],
                StreamSpecification={
                    "StreamEnabled": True,
                    "StreamViewType": "NEW_AND_OLD_IMAGES",
                },
                BillingMode="PAY_PER_REQUEST",
            )
            item = {"Artist": {"S": "Björk"}, "Label": {"S": "OLI"}, "Albums": {"N": "10"}}
            client.put_item(TableName="Music", Item=item)
            deadline = time.monotonic() + HANG_SECONDS
            while time.monotonic() < deadline:
                if client.scan(TableName="Music", IndexName="ByLabel")["Count"]:
                    break
        assert server.stop() == 0
    rows = Rdict(str(data / "rocksdb"), Options(raw_mode=True), access_type=AccessType.read_only())
    with closing(rows):
        assert wanted - set(rows.keys()) == set()


@pytest.mark.parametrize("floor", ["actors", "api", "load", "model", "storage", "streams"])
def test_every_file_named_in_a_folders_docstring_exists(floor: str):
    named = [
        (path, name)
        for path in (PROJECT / floor).rglob("__init__.py")
        for name in re.findall(
            r"``([\w/]+(?:\.py|/))``", ast.get_docstring(ast.parse(path.read_text())) or ""
        )
    ]
    places = [(path.parent / name, PROJECT / name) for path, name in named]
    assert [pair for pair in places if not any(place.exists() for place in pair)] == []

"""The violation detector: the command ``dynactor violations`` (S188, S190)."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynactor.api.command_line import app
from tests.support.clients.clients import WireClient
from tests.support.servers.server import PROJECT
from tests.support.tables.tables import table, wait_until_active

LONG = "x" * 2049
# Items that violate the index key: ``score`` must be a number and ``name`` a string.
VIOLATIONS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "string": ("score", {"S": "12"}, "S", "wrong type"),
    "list": ("score", {"L": [{"N": "1"}]}, "L", "wrong type"),
    "null": ("score", {"NULL": True}, "NULL", "wrong type"),
    "empty": ("name", {"S": ""}, "S", "empty"),
    "long": ("name", {"S": "é" * 513}, "S", "too long"),
}


def run(endpoint: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``dynactor violations`` with these arguments in this process."""
    command = ["violations", "--endpoint", endpoint, *arguments]
    stdout, stderr = io.StringIO(), io.StringIO()
    with redirect_stdout(stdout), redirect_stderr(stderr):
        exit_code = app(command, result_action="return_value")
    return subprocess.CompletedProcess(command, exit_code, stdout.getvalue(), stderr.getvalue())


def run_process(endpoint: str, *arguments: str, **streams: Any) -> subprocess.CompletedProcess[str]:
    """Run ``dynactor violations`` with these arguments in a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "dynactor", "violations", "--endpoint", endpoint, *arguments],
        cwd=PROJECT,
        env={**os.environ, "TERM": "xterm"},
        text=True,
        timeout=60,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
    )


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    # A line contains the whole value, which is longer than csv's default limit.
    csv.field_size_limit(1_000_000)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def json_text(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()


def put(wire: WireClient, table_name: str, pk: str, /, **attributes: Any) -> None:
    wire("PutItem", {"TableName": table_name, "Item": {"pk": {"S": pk}, **attributes}})


def items(wire: WireClient, name: str) -> dict[str, dict[str, Any]]:
    """All items without their keys, by key."""
    found = wire("Scan", {"TableName": name})["Items"]
    return {item.pop("pk")["S"]: item for item in found}


@pytest.fixture
def scores(wire: WireClient) -> Iterator[str]:
    """A table with one violation of each kind, and items without any."""
    with table(wire, "pk:S") as name:
        for pk, (attribute, value, _, _) in VIOLATIONS.items():
            others = {"score": {"N": "1"}, "name": {"S": "ann"}}
            put(wire, name, pk, **{**others, attribute: value})
        put(wire, name, "sound", score={"N": "1"}, name={"S": "é" * 512})
        put(wire, name, "bare")
        yield name


OF_INDEX = ("--partition-key", "score:N", "--sort-key", "name:S")


def test_each_kind_of_violation_is_listed_with_its_reason(endpoint: str, scores: str):
    done = run(endpoint, "--table", scores, *OF_INDEX)
    assert done.returncode == 1
    assert done.stderr == "5 violations in 7 items\n"
    assert {line["key"]: line for line in lines(done)} == {
        f'{{"pk":{{"S":"{pk}"}}}}': {
            "key": f'{{"pk":{{"S":"{pk}"}}}}',
            "attribute": attribute,
            "expected_type": "N" if attribute == "score" else "S",
            "found_type": found_type,
            "reason": reason,
            "value": json_text(value),
            "correction": "",
            "delete": "",
        }
        for pk, (attribute, value, found_type, reason) in VIOLATIONS.items()
    }


def test_a_table_without_violations_ends_with_0(endpoint: str, wire: WireClient):
    with table(wire, "pk:S") as name:
        put(wire, name, "sound", score={"N": "1"})
        done = run(endpoint, "--table", name, "--partition-key", "score:N")
    assert done.returncode == 0
    assert done.stdout == (
        "key,attribute,expected_type,found_type,reason,value,correction,delete\n"
    )
    assert done.stderr == "0 violations in 1 items\n"


def test_json_has_one_object_per_line_and_goes_to_the_given_file(
    endpoint: str, scores: str, tmp_path: Path
):
    output = tmp_path / "violations.json"
    done = run(endpoint, "--table", scores, *OF_INDEX, "--format", "json", "--output", str(output))
    assert (done.returncode, done.stdout) == (1, "")
    found = [msgspec.json.decode(line) for line in output.read_text().splitlines()]
    assert len(found) == 5
    assert {
        "key": {"pk": {"S": "empty"}},
        "attribute": "name",
        "expected_type": "S",
        "found_type": "S",
        "reason": "empty",
        "value": {"S": ""},
        "correction": "",
        "delete": "",
    } in found


def test_a_partition_key_may_be_longer_than_a_sort_key(endpoint: str, wire: WireClient):
    with table(wire, "pk:S") as name:
        put(wire, name, "long", text={"S": "x" * 2048}, data={"B": b64encode(b"x" * 2048).decode()})
        put(wire, name, "longer", text={"S": LONG}, data={"B": b64encode(b"x" * 2049).decode()})
        for key, count in (("text:S", 1), ("data:B", 1)):
            assert len(lines(run(endpoint, "--table", name, "--partition-key", key))) == count
        both = run(endpoint, "--table", name, "--partition-key", "absent:S", "--sort-key", "text:S")
        assert len(lines(both)) == 2


def test_the_attributes_of_a_multi_attribute_key_share_its_size_limit(
    endpoint: str, wire: WireClient
):
    with table(wire, "pk:S") as name:
        put(wire, name, "fits", a={"S": "x" * 1000}, b={"S": "x" * 1048})
        put(wire, name, "does not", a={"S": "x" * 1000}, b={"S": "x" * 1049})
        done = run(endpoint, "--table", name, "--partition-key", "a:S", "--partition-key", "b:S")
    (line,) = lines(done)
    assert (line["key"], line["attribute"]) == ('{"pk":{"S":"does not"}}', "b")
    assert line["reason"] == "too long together"


def test_a_large_table_is_read_to_its_end(endpoint: str, wire: WireClient):
    with table(wire, "pk:S") as name:
        for number in range(12):
            put(wire, name, str(number), score={"S": "x" * 350_000})
        done = run(endpoint, "--table", name, "--partition-key", "score:N", "--segments", "2")
    assert len({line["key"] for line in lines(done)}) == 12
    assert done.stderr == "12 violations in 12 items\n"


def test_fix_delete_removes_only_the_attribute(endpoint: str, wire: WireClient, scores: str):
    before = items(wire, scores)
    done = run(endpoint, "--table", scores, *OF_INDEX, "--fix", "delete")
    assert done.returncode == 0
    assert done.stderr == "5 violations in 7 items, 5 of them corrected\n"
    assert {line["outcome"] for line in lines(done)} == {"removed"}
    expected = {
        pk: {
            name: value
            for name, value in item.items()
            if pk not in VIOLATIONS or name != VIOLATIONS[pk][0]
        }
        for pk, item in before.items()
    }
    assert items(wire, scores) == expected
    assert run(endpoint, "--table", scores, *OF_INDEX).returncode == 0


def test_fix_rewrite_changes_only_attributes_with_a_given_value(
    endpoint: str, wire: WireClient, scores: str
):
    done = run(endpoint, "--table", scores, *OF_INDEX, "--fix", "rewrite", "--value", "score=-7.50")
    # Violations of name remain, because no value is given for it.
    assert done.returncode == 1
    assert done.stderr == "5 violations in 7 items, 3 of them corrected\n"
    found = items(wire, scores)
    for pk, (attribute, value, _, _) in VIOLATIONS.items():
        assert found[pk][attribute] == ({"N": "-7.5"} if attribute == "score" else value)
    assert found["sound"]["score"] == {"N": "1"}
    assert found["bare"] == {}


def test_fix_convert_converts_a_numeric_string_to_a_number(
    endpoint: str, wire: WireClient, scores: str
):
    put(wire, scores, "word", score={"S": "many"})
    put(wire, scores, "spaced", score={"S": " 7.0 "})
    put(wire, scores, "number", name={"N": "30"})
    done = run(endpoint, "--table", scores, *OF_INDEX, "--fix", "convert")
    assert done.returncode == 1
    found = items(wire, scores)
    assert found["string"]["score"] == {"N": "12"}
    assert found["spaced"]["score"] == {"N": "7"}
    assert found["number"]["name"] == {"S": "30"}
    assert found["word"]["score"] == {"S": "many"}
    assert found["list"]["score"] == VIOLATIONS["list"][1]
    assert done.stderr == "8 violations in 10 items, 3 of them corrected\n"
    assert {line["outcome"] for line in lines(done)} == {
        "rewritten",
        "not corrected: there is no new value",
    }


def test_a_violation_in_the_primary_key_is_reported_and_not_fixed(endpoint: str, wire: WireClient):
    with table(wire, "pk:S") as name:
        put(wire, name, "y" * 1025)
        done = run(
            endpoint, "--table", name, "--partition-key", "score:N", "--sort-key", "pk:S",
            "--fix", "delete",
        )  # fmt: skip
        assert len(items(wire, name)) == 1
    (line,) = lines(done)
    assert done.returncode == 1
    assert line["outcome"] == "not corrected: the attribute is part of the item's primary key"


# -- limits of a search -----------------------------------------------------------------------


def test_a_search_stops_after_the_maximum_of_violations(endpoint: str, scores: str):
    done = run(endpoint, "--table", scores, *OF_INDEX, "--max-violations", "2", "--segments", "1")
    assert len(lines(done)) == 2
    assert done.returncode == 1
    assert done.stderr.startswith("2 violations in ")
    assert done.stderr.endswith("; stopped at --max-violations\n")


@pytest.mark.parametrize("most", [1, 3, 6])
def test_a_search_stops_after_the_maximum_of_items(endpoint: str, scores: str, most: int):
    done = run(endpoint, "--table", scores, *OF_INDEX, "--max-items", str(most))
    assert len(lines(done)) <= most
    assert f" violations in {most} items" in done.stderr
    assert done.stderr.endswith("; stopped at --max-items\n")


def test_a_limit_that_is_not_reached_is_not_reported(endpoint: str, scores: str):
    done = run(endpoint, "--table", scores, *OF_INDEX, "--max-items", "100")
    assert done.stderr == "5 violations in 7 items\n"


def test_a_share_of_the_units_slows_a_search_and_finds_the_same(endpoint: str, scores: str):
    whole = run(endpoint, "--table", scores, *OF_INDEX)
    slowed = run(endpoint, "--table", scores, *OF_INDEX, "--units-percent", "90")
    assert sorted(map(str, lines(slowed))) == sorted(map(str, lines(whole)))
    fixed = run(endpoint, "--table", scores, *OF_INDEX, "--fix", "delete", "--units-percent", "100")
    assert fixed.returncode == 0


# -- corrections from a file ------------------------------------------------------------------


def corrected(
    path: Path, done: subprocess.CompletedProcess[str], answers: dict[str, dict[str, str]]
) -> str:
    """A report with corrections, by the partition keys of its lines."""
    found = lines(done)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        for line in found:
            pk = msgspec.json.decode(line["key"])["pk"]["S"]
            writer.writerow(line | answers.get(pk, {}))
    return str(path)


def test_the_corrections_of_an_edited_report_are_applied(
    endpoint: str, wire: WireClient, scores: str, tmp_path: Path
):
    before = items(wire, scores)
    report = run(endpoint, "--table", scores, *OF_INDEX)
    put(wire, scores, "null", score={"N": "9"}, name={"S": "ann"})
    answers = {
        "string": {"correction": "12.50"},
        "list": {"delete": "Y"},
        "null": {"correction": "3"},
        "empty": {"correction": "bob"},
    }
    path = corrected(tmp_path / "edited.csv", report, answers)

    done = run(endpoint, "--table", scores, *OF_INDEX, "--corrections", path)

    found = items(wire, scores)
    assert found["string"] == before["string"] | {"score": {"N": "12.5"}}
    assert found["list"] == {"name": {"S": "ann"}}
    assert found["empty"] == before["empty"] | {"name": {"S": "bob"}}
    # One item was changed after the report, and one has no correction.
    assert found["null"]["score"] == {"N": "9"}
    assert found["long"] == before["long"]
    outcomes = {msgspec.json.decode(line["key"])["pk"]["S"]: line for line in lines(done)}
    assert {pk: line["outcome"] for pk, line in outcomes.items()} == {
        "string": "rewritten",
        "list": "removed",
        "null": "not corrected: the value has changed meanwhile",
        "empty": "rewritten",
        "long": "not corrected: there is no new value",
    }
    assert (done.returncode, done.stderr) == (1, "5 violations in 5 items, 3 of them corrected\n")


def test_corrections_may_be_json(endpoint: str, wire: WireClient, scores: str, tmp_path: Path):
    path = tmp_path / "edited.json"
    as_json = ("--table", scores, *OF_INDEX, "--format", "json")
    report = run(endpoint, *as_json).stdout
    answered = [
        msgspec.json.decode(line) | {"correction": "7" if '"score"' in line else "x"}
        for line in report.splitlines()
    ]
    path.write_bytes(b"\n".join(map(msgspec.json.encode, answered)))

    done = run(endpoint, *as_json, "--corrections", str(path))

    assert (done.returncode, done.stderr) == (0, "5 violations in 5 items, 5 of them corrected\n")
    assert items(wire, scores)["long"]["name"] == {"S": "x"}
    assert run(endpoint, "--table", scores, *OF_INDEX).returncode == 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"correction": "many"}, "numeric value: many"),
        ({"correction": "1", "delete": "Y"}, "and delete is Y"),
        ({"delete": "maybe"}, "Y or N"),
        ({"attribute": "other"}, "not part of the index's key"),
        ({"key": "{}"}, "the attributes of the key are not those of"),
        ({"key": "nonsense"}, "malformed"),
        ({"value": ""}, "truncated"),
    ],
)
def test_a_file_with_a_bad_line_changes_nothing(
    endpoint: str, wire: WireClient, scores: str, tmp_path: Path, *, answer: Any, words: str
):
    before = items(wire, scores)
    report = run(endpoint, "--table", scores, *OF_INDEX)
    answers = {"string": answer, "list": {"delete": "Y"}}
    path = corrected(tmp_path / "edited.csv", report, answers)

    done = run(endpoint, "--table", scores, *OF_INDEX, "--corrections", path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dynactor: {path}, line ")
    assert words in done.stderr
    assert items(wire, scores) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--index"),
        (("--index", "by-x", "--partition-key", "x:S"), "--index"),
        (("--index", "by-x", "--sort-key", "x:S"), "--partition-key"),
        (("--index", "by-x"), "it has none"),
        (("--partition-key", "x"), "NAME:TYPE"),
        (("--partition-key", "x:SS"), "NAME:TYPE"),
        (("--partition-key", "pk:N"), "defines pk as S"),
        (("--partition-key", "x:N", "--fix", "rewrite"), "--value"),
        (("--partition-key", "x:N", "--fix", "delete", "--value", "x=1"), "--fix rewrite"),
        (("--partition-key", "x:N", "--fix", "rewrite", "--value", "x=one"), "x=one"),
        (("--partition-key", "x:N", "--fix", "rewrite", "--value", "y=1"), "y=1"),
        (("--partition-key", "x:S", "--fix", "rewrite", "--value", "x="), "violation itself"),
        (("--partition-key", "x:S", "--output", "/nonexistent/file"), "/nonexistent/file"),
        (("--partition-key", "x:S", "--corrections", "/nonexistent/file"), "/nonexistent/file"),
        (("--partition-key", "x:S", "--corrections", "a", "--fix", "delete"), "--corrections"),
        (("--partition-key", "x:S", "--corrections", "a", "--output", "a"), "--output"),
    ],
)
def test_an_impossible_command_is_reported_in_one_line(
    endpoint: str, simple: str, arguments: tuple[str, ...], words: str
):
    done = run(endpoint, "--table", simple, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dynactor: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_a_missing_table_is_reported(endpoint: str):
    done = run(endpoint, "--table", "nowhere", "--partition-key", "x:S")
    assert done.returncode == 2
    assert "ResourceNotFoundException" in done.stderr


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://", "nonsense"])
def test_an_endpoint_without_a_server_is_reported(address: str):
    done = run(address, "--table", "any", "--partition-key", "x:S")
    assert done.returncode == 2
    assert done.stderr.startswith("dynactor: ")
    assert address in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_exit_code_shows_the_result(endpoint: str, wire: WireClient):
    with table(wire, "pk:S") as name:
        arguments = ("--table", name, "--partition-key", "score:N")
        assert run_process(endpoint, *arguments).returncode == 0
        put(wire, name, "x", score={"S": "x"})
        done = run_process(endpoint, *arguments)
        assert (done.returncode, len(lines(done))) == (1, 1)
        assert run_process(endpoint, *arguments, "--fix", "delete").returncode == 0
        assert run_process(endpoint, "--table", name).returncode == 2
        assert run_process(endpoint).returncode == 2


def test_a_closed_output_pipe_is_no_error(endpoint: str, wire: WireClient):
    with table(wire, "pk:S") as name:
        put(wire, name, "x", score={"S": "x"})
        reading, writing = os.pipe()
        os.close(reading)
        arguments = ("--table", name, "--partition-key", "score:N")
        done = run_process(endpoint, *arguments, stdout=writing)
        os.close(writing)
    assert (done.returncode, done.stderr) == (2, "")


def test_a_progress_bar_is_printed_only_on_a_terminal(
    endpoint: str, wire: WireClient, tmp_path: Path
):
    with table(wire, "pk:S") as name:
        put(wire, name, "x", score={"S": "x"})
        arguments = ("--table", name, "--partition-key", "score:N", "--output", str(tmp_path / "x"))
        assert run_process(endpoint, *arguments).stderr == "1 violations in 1 items\n"
        ours, its = os.openpty()
        run_process(endpoint, *arguments, stderr=its)
        os.close(its)
        said = os.read(ours, 65536).decode()
        os.close(ours)
    assert "1/1" in said


@pytest.mark.differs_from_dynamodb_local("an index over violations ends in InternalFailure there")
def test_the_violations_of_an_existing_index_are_listed(endpoint: str, wire: WireClient):
    """A12: the detector lists exactly the items that the backfill of an added index leaves out."""
    with table(wire, "pk:S") as name:
        put(wire, name, "sound", score={"N": "1"}, name={"S": "ann"})
        for pk, (attribute, value, _, _) in VIOLATIONS.items():
            others = {"score": {"N": "1"}, "name": {"S": "ann"}}
            put(wire, name, pk, **{**others, attribute: value})
        add_index(wire, name)
        left_out = run(endpoint, "--table", name, "--index", "by-score")
        assert {msgspec.json.decode(line["key"])["pk"]["S"] for line in lines(left_out)} == set(
            VIOLATIONS
        )
        assert left_out.returncode == 1
        mended = run(
            endpoint, "--table", name, "--index", "by-score", "--fix", "rewrite",
            "--value", "score=2", "--value", "name=bob",
        )  # fmt: skip
        assert mended.returncode == 0, mended.stdout
        assert run(endpoint, "--table", name, "--index", "by-score").returncode == 0
        indexed = wire("Scan", {"TableName": name, "IndexName": "by-score"})["Count"]
        while indexed < 6:
            indexed = wire("Scan", {"TableName": name, "IndexName": "by-score"})["Count"]
        assert run(endpoint, "--table", name, "--index", "other").stderr == (
            "dynactor: The table has no global secondary index other: it has by-score. "
            "For a planned index give --partition-key\n"
        )


def add_index(wire: WireClient, name: str) -> None:
    index = {
        "IndexName": "by-score",
        "KeySchema": [
            {"AttributeName": "score", "KeyType": "HASH"},
            {"AttributeName": "name", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "ALL"},
    }
    wire(
        "UpdateTable",
        {
            "TableName": name,
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "score", "AttributeType": "N"},
                {"AttributeName": "name", "AttributeType": "S"},
            ],
            "GlobalSecondaryIndexUpdates": [{"Create": index}],
        },
    )
    while True:
        (described,) = wait_until_active(wire, name)["GlobalSecondaryIndexes"]
        if described["IndexStatus"] == "ACTIVE":
            return

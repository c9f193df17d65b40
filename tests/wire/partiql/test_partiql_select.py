"""SELECT returns the same items for the same units as an equivalent Query or Scan.

The statements are in ``where.txt``, ``from.txt`` and ``columns.txt``.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.partiql import execute, pages, plain, request_of, statement
from tests.support.tables.songs import SONGS, songs_table
from tests.support.tables.statement_scripts import Scripted, failures, scripted
from tests.support.tables.tables import global_index, table

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

READS = scripted("where", "from")


class Other(NamedTuple):
    """A Query or Scan equivalent to a SELECT.

    A Query can't filter on keys. If the SELECT does, the Query is ``wider``: it returns more items.
    """

    operation: str
    request: dict[str, Any]
    wider: bool


@pytest.fixture(scope="module")
def songs(wire: WireClient) -> Iterator[str]:
    with songs_table(wire) as name:
        yield name


def text_of(case: Scripted, songs: str) -> str:
    return case.statement.replace("$songs", f'"{songs}"')


def others_of(case: Scripted, songs: str) -> list[Other]:
    """The equivalent requests in a script: ``Query artist = 'Acme' | filter … | backward``."""
    others = []
    for line in case.outcome:
        operation, _, rest = line.removeprefix("part of ").partition(" ")
        if operation not in ("Query", "Scan"):
            continue
        parts = [part for part in rest.split(" | ") if part]
        expressions = {"columns": "artist, song"}
        if operation == "Query":
            expressions["key"] = parts.pop(0)
        members: dict[str, Any] = {}
        for part in parts:
            word, _, value = part.partition(" ")
            match word:
                case "filter":
                    expressions["where"] = value
                case "columns":
                    expressions["columns"] = value
                case "index":
                    members["IndexName"] = value
                case "backward":
                    members["ScanIndexForward"] = False
                case _:
                    raise AssertionError(line)
        request = request_of(songs, **expressions) | members
        others.append(Other(operation, request, line.startswith("part of ")))
    return others


def places(items: list[dict[str, Any]]) -> list[str]:
    return [f"{item['artist'][0]}:{item['song']}" for item in items]


def in_order(found: list[str], others: list[Other]) -> list[str]:
    """The places in order; if one request is a Scan, sorted, because its order is unspecified."""
    return sorted(found) if others[0].operation == "Scan" else found


@pytest.mark.parametrize("cases", READS)
def test_a_select_finds_the_same_items_as_a_query_or_scan(
    lanes: LanesClient, songs: str, cases: list[Scripted]
) -> None:
    def check(case: Scripted) -> None:
        others = others_of(case, songs)
        found = in_order(places(execute(lanes, text_of(case, songs))), others)
        assert found == (case.part("→") or "").split()
        of_others = []
        for other in others:
            answer = lanes(other.operation, other.request)
            of_others += places([plain(item) for item in answer["Items"]])
        if any(other.wider for other in others):
            of_others = [place for place in of_others if place in found]
        assert in_order(of_others, others) == found

    assert failures(cases, check) == []


@differs_from_dynamodb_local("tells no consumed capacity")
@pytest.mark.parametrize("consistent", [False, True], ids=["eventually", "consistently"])
@pytest.mark.parametrize("cases", READS)
def test_a_select_costs_the_same_as_a_query_or_scan(
    wire: WireClient, songs: str, cases: list[Scripted], *, consistent: bool
) -> None:
    members = {"ConsistentRead": consistent, "ReturnConsumedCapacity": "INDEXES"}

    def check(case: Scripted) -> None:
        request = statement(text_of(case, songs), **members)
        if consistent and "by-genre" in case.statement:
            assert wire.refused("ExecuteStatement", request) == (
                "ValidationException",
                "Strongly consistent read is not supported on Global Secondary Indexes",
            )
            return
        price = wire("ExecuteStatement", request)["ConsumedCapacity"]
        prices = [
            wire(other.operation, other.request | members)["ConsumedCapacity"]
            for other in others_of(case, songs)
        ]
        if len(prices) == 1:
            assert price == prices[0]
        assert price["CapacityUnits"] == sum(one["CapacityUnits"] for one in prices)

    assert failures(cases, check) == []


@pytest.mark.parametrize("cases", scripted("columns"))
def test_columns_are_named_by_the_last_parts_of_their_paths(
    wire: WireClient, songs: str, cases: list[Scripted]
) -> None:
    key = "artist = 'Acme' AND song = 'Alpha'"

    def check(case: Scripted) -> None:
        text = f"{text_of(case, songs)} WHERE {key}"
        assert execute(wire, text) == [literal_eval(case.part("→") or "")]
        answer = wire("Query", request_of(songs, key=key, columns=case.part("Query") or ""))
        items = [plain(item) for item in answer["Items"]]
        assert items == [literal_eval(case.part("projected") or "")]

    assert failures(cases, check) == []


def test_a_star_selects_the_whole_item(wire: WireClient, songs: str) -> None:
    answer = wire("ExecuteStatement", statement(f'SELECT * FROM "{songs}"'))
    assert answer["Items"] == wire("Scan", {"TableName": songs})["Items"]
    assert len(answer["Items"]) == len(SONGS)


def test_binary_keys_are_given_as_parameters(wire: WireClient, binary: str, pk: str) -> None:
    keys = [pk.encode() + end for end in (b"\x00", b"\x7f", b"\xff")]
    for key in keys:
        for sort in (b"\x01", b"\xfe"):
            insert = f"INSERT INTO \"{binary}\" VALUE {{'pk': ?, 'sk': ?}}"
            assert execute(wire, insert, key, sort) == []
    text = f'SELECT * FROM "{binary}" WHERE pk IN [?, ?, ?] AND sk > ?'
    found = execute(wire, text, *reversed(keys), b"\x01")
    assert found == [{"pk": key, "sk": b"\xfe"} for key in keys]


def test_numbers_in_keys_are_equal_in_any_notation(wire: WireClient, numeric: str, pk: str) -> None:
    for number in ("1.50", "-2", "1e3"):
        text = f"INSERT INTO \"{numeric}\" VALUE {{'pk': '{pk}', 'sk': {number}}}"
        execute(wire, text)
    text = f"SELECT sk FROM \"{numeric}\" WHERE pk = '{pk}' AND sk BETWEEN -2.0 AND 15e-1"
    assert [int(item["sk"] * 10) for item in execute(wire, text)] == [-20, 15]
    text = f"SELECT sk FROM \"{numeric}\" WHERE pk = '{pk}' AND sk = 1000.00"
    assert len(execute(wire, text)) == 1


@differs_from_dynamodb_local("answers with an internal failure")
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_key_of_an_index_may_have_several_items(wire: WireClient, songs: str, limit: int) -> None:
    where = "artist = 'Acme' AND album IN ['One', 'Two']"
    text = f'SELECT artist, song FROM "{songs}"."by-album" WHERE {where}'
    items = [item for page in pages(wire, text, Limit=limit) for item in page["Items"]]
    assert places([plain(item) for item in items]) == ["A:Alpha", "A:Gamma", "A:Beta"]


@differs_from_dynamodb_local("takes names alone")
def test_a_table_may_be_named_by_its_arn(wire: WireClient, songs: str) -> None:
    arn = wire("DescribeTable", {"TableName": songs})["Table"]["TableArn"]
    key = "artist = 'Cora'"
    for source in (f'"{arn}"', f'"{arn}"."by-album"'):
        text = f"SELECT artist, song FROM {source} WHERE {key}"
        assert places(execute(wire, text)) == ["C:Beta"]
    refusal = wire.refused("ExecuteStatement", {"Statement": 'SELECT * FROM "arn:aws:s3:::abc"'})
    assert refusal.type == "ValidationException"


SEVERAL_KEY_ATTRIBUTES = (
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or "
    "multi-attribute RANGE keys."
)


@differs_from_dynamodb_local("knows no such keys")
@pytest.mark.parametrize(
    "keys",
    [
        ("team:HASH", "city:HASH"),
        ("team:HASH", "year_of:RANGE", "place:RANGE"),
        ("team:HASH", "city:HASH", "year_of:RANGE", "place:RANGE"),
    ],
)
def test_an_index_with_a_multi_attribute_key_cannot_be_selected_from(
    wire: WireClient, keys: tuple[str, ...]
) -> None:
    attributes = ("id:S", "team:S", "city:S", "year_of:N", "place:N")
    names = {key.partition(":")[0] for key in keys} | {"id"}
    schema = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
    used = [attribute for attribute in attributes if attribute.partition(":")[0] in names]
    index = global_index("by-team", *keys)
    with table(wire, *used, GlobalSecondaryIndexes=[index], **schema) as name:
        source = f'"{name}"."by-team"'
        for select in (
            f"SELECT * FROM {source}",
            f"SELECT * FROM {source} WHERE team = 'x' AND city = 'Rome'",
            f"SELECT * FROM {source} WHERE team = 1",
            f"SELECT count(*) FROM {source}",
            f"SELECT * FROM {source} WHERE similar(team)",
            f"SELECT * FROM {source} WHERE team = ?",
        ):
            request = {"Statement": select}
            refusal = wire.refused("ExecuteStatement", request)
            assert refusal == ("ValidationException", SEVERAL_KEY_ATTRIBUTES)
            (response,) = wire("BatchExecuteStatement", {"Statements": [request]})["Responses"]
            assert response["Error"]["Code"] == "ValidationError"
            assert response["Error"]["Message"] == SEVERAL_KEY_ATTRIBUTES
        request = {
            "Statement": f"SELECT * FROM {source} WHERE team = ?",
            "Parameters": [{"N": "1e99999999999"}],
        }
        assert wire.refused("ExecuteStatement", request).message == (
            "The parameter cannot be converted to a numeric value: 1e99999999999"
        )
        # The table itself can be read.
        assert execute(wire, f'SELECT * FROM "{name}"') == []


@differs_from_dynamodb_local("filters whole items")
def test_with_a_key_within_an_or_a_filter_may_name_any_attribute(
    wire: WireClient, songs: str
) -> None:
    source = f'"{songs}"."by-genre-keys"'
    where = "(genre = 'rock' AND album = 'One') OR genre = 'jazz'"
    found = execute(wire, f"SELECT artist, song FROM {source} WHERE {where}")
    assert places(found) == ["A:Gamma", "B:Delta"]

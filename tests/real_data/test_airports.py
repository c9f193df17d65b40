"""Real input: the airports of ``vega-datasets``, every answer compared with plain Python's.

3,376 rows as people wrote them: names with quotes and accents, decimals of uneven length, missing
cities. They are loaded by boto3's ``batch_writer`` into a table with two local indexes; then each
query, filter, projection and page is computed again from the rows, in the simplest way.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from vega_datasets import data

from tests.support.clients import WireClient
from tests.support.tables import definition, local_index, unique_name

Row = dict[str, Any]

SEED = 20_260_101
SORT_KEYS = {None: "iata", "by-latitude": "latitude", "by-city": "city"}
HELD = {
    None: None,
    "by-latitude": None,
    "by-city": {"state", "iata", "city", "name", "where"},
}
INDEXES = (
    local_index("by-latitude", "state", "latitude"),
    local_index("by-city", "state", "city", "INCLUDE", ("name", "where")),
)

_serializer = TypeSerializer()
_deserializer = TypeDeserializer()


def rows() -> list[Row]:
    """The airports in Python's values; a city nobody knows is left out."""
    with Path(data.airports.filepath).open(newline="", encoding="utf-8") as file:
        return [_row(**line) for line in csv.DictReader(file)]


def _row(**line: str) -> Row:
    latitude, longitude = Decimal(line["latitude"]), Decimal(line["longitude"])
    known = {"city": line["city"]} if line["city"] != "NA" else {}
    return {
        "state": line["state"],
        "iata": line["iata"],
        "name": line["name"],
        "country": line["country"],
        "latitude": latitude,
        "where": {"point": [latitude, longitude], "country": {"name": line["country"]}},
        "words": set(line["name"].split()),
        **known,
    }


class Airports:
    """The table under test, and the rows it was loaded from."""

    def __init__(self, wire: WireClient, table: str, airports: list[Row]) -> None:
        self.wire = wire
        self.table = table
        self.rows = airports
        self.states = sorted({row["state"] for row in airports})

    def of(self, state: str, index: str | None) -> list[Row]:
        """A partition as plain Python sorts it; ties stand in any order."""
        sort_key = SORT_KEYS[index]
        within = [row for row in self.rows if row["state"] == state and sort_key in row]
        return sorted(within, key=lambda row: _bytes_of(row[sort_key]))

    def ask(self, operation: str, **members: Any) -> tuple[list[Row], dict[str, Any]]:
        """One request; its items in Python's values, and the rest of the answer."""
        members = {name: value for name, value in members.items() if value is not None}
        answer = self.wire(operation, {"TableName": self.table, **members})
        items = [
            {name: _deserializer.deserialize(value) for name, value in item.items()}
            for item in answer.pop("Items", [])
        ]
        assert answer["Count"] == len(items) or members.get("Select") == "COUNT"
        return items, answer

    def query(
        self, state: str, index: str | None = None, condition: str = "", **members: Any
    ) -> tuple[list[Row], dict[str, Any]]:
        """A query of one state; ``values`` are Python's."""
        values = {":state": state, **members.pop("values", {})}
        return self.ask(
            "Query",
            IndexName=index,
            KeyConditionExpression="#state = :state" + condition,
            ExpressionAttributeNames={"#state": "state", **members.pop("names", {})},
            ExpressionAttributeValues={
                name: _serializer.serialize(value) for name, value in values.items()
            },
            **members,
        )

    def pages(
        self, ask: Callable[..., tuple[list[Row], dict[str, Any]]], **members: Any
    ) -> Iterator[list[Row]]:
        """All pages of a query or scan."""
        start = None
        while True:
            items, answer = ask(**members, ExclusiveStartKey=start)
            yield items
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return


def _bytes_of(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def held(items: list[Row], index: str | None) -> list[Row]:
    """What an index gives of rows."""
    names = HELD[index]
    if names is None:
        return items
    return [{name: value for name, value in row.items() if name in names} for row in items]


def same(found: list[Row], expected: list[Row]) -> bool:
    """Whether two lists hold the same items, in whatever order."""
    return sorted(map(_frozen, found)) == sorted(map(_frozen, expected))


def _frozen(value: Any) -> str:
    """A value's text, the same for equal values: neither maps nor sets have an order."""
    if isinstance(value, dict):
        return repr(sorted((name, _frozen(member)) for name, member in value.items()))
    if isinstance(value, list):
        return repr([_frozen(member) for member in value])
    return repr(sorted(value) if isinstance(value, set) else value)


def in_order(found: list[Row], sort_key: str, *, backwards: bool = False) -> bool:
    values = [_bytes_of(row[sort_key]) for row in found]
    return all(left >= right if backwards else left <= right for left, right in pairwise(values))


@pytest.fixture(scope="module")
def airports(wire: WireClient, resource: Any) -> Iterator[Airports]:
    """The table, loaded."""
    name = unique_name("airports")
    request = definition("state:S", "iata:S", "latitude:N", "city:S", indexes=INDEXES, name=name)
    table = resource.create_table(**request)
    table.wait_until_exists()
    loaded = rows()
    with table.batch_writer() as batch:
        for row in loaded:
            batch.put_item(Item=row)
    yield Airports(wire, name, loaded)
    table.delete()


def test_every_row_is_there(airports: Airports):
    assert len(airports.rows) == 3376
    found = [row for page in airports.pages(lambda **m: airports.ask("Scan", **m)) for row in page]
    assert same(found, airports.rows)


@pytest.mark.parametrize("index", [None, "by-latitude", "by-city"])
@pytest.mark.parametrize("forward", [True, False])
def test_every_partition_comes_whole_and_in_order(
    airports: Airports, index: str | None, *, forward: bool
):
    for state in airports.states:
        found, answer = airports.query(state, index, ScanIndexForward=forward)
        assert same(found, held(airports.of(state, index), index))
        assert in_order(found, SORT_KEYS[index], backwards=not forward)
        assert answer["ScannedCount"] == len(found)
        assert "LastEvaluatedKey" not in answer


CONDITIONS: list[tuple[str, Callable[[Any, Any, Any], bool]]] = [
    (" AND #sort = :low", lambda value, low, _: value == low),
    (" AND #sort < :low", lambda value, low, _: value < low),
    (" AND #sort <= :low", lambda value, low, _: value <= low),
    (" AND #sort > :low", lambda value, low, _: value > low),
    (" AND #sort >= :low", lambda value, low, _: value >= low),
    (" AND #sort BETWEEN :low AND :high", lambda value, low, high: low <= value <= high),
]


@pytest.mark.parametrize("index", [None, "by-latitude", "by-city"])
@pytest.mark.parametrize(("condition", "holds"), CONDITIONS, ids=[c[0] for c in CONDITIONS])
def test_conditions_on_the_sort_key_narrow_every_partition(
    airports: Airports,
    index: str | None,
    condition: str,
    holds: Callable[[Any, Any, Any], bool],
):
    chance = random.Random(SEED)
    sort_key = SORT_KEYS[index]
    for state in airports.states:
        partition = airports.of(state, index)
        if not partition:
            continue
        low, high = sorted((chance.choice(partition)[sort_key] for _ in range(2)), key=_bytes_of)
        values = {":low": low, ":high": high} if ":high" in condition else {":low": low}
        found, _ = airports.query(state, index, condition, names={"#sort": sort_key}, values=values)
        bounds = (_bytes_of(low), _bytes_of(high))
        expected = [row for row in partition if holds(_bytes_of(row[sort_key]), *bounds)]
        assert same(found, held(expected, index))
        assert in_order(found, sort_key)


@pytest.mark.parametrize("index", [None, "by-city"])
def test_every_beginning_finds_what_begins_so(airports: Airports, index: str | None):
    chance = random.Random(SEED)
    sort_key = SORT_KEYS[index]
    for state in airports.states:
        partition = airports.of(state, index)
        for row in chance.sample(partition, min(3, len(partition))):
            beginning = row[sort_key][: chance.randint(1, 4)]
            found, _ = airports.query(
                state,
                index,
                " AND begins_with(#sort, :low)",
                names={"#sort": sort_key},
                values={":low": beginning},
            )
            expected = [row for row in partition if row[sort_key].startswith(beginning)]
            assert same(found, held(expected, index))


FILTERS: list[tuple[str, dict[str, Any], Callable[[Row], bool]]] = [
    ("latitude > :x", {":x": Decimal("40.5")}, lambda row: row["latitude"] > Decimal("40.5")),
    (
        "latitude BETWEEN :x AND :y",
        {":x": Decimal(30), ":y": Decimal(35)},
        lambda row: 30 <= row["latitude"] <= 35,
    ),
    ("attribute_exists(city)", {}, lambda row: "city" in row),
    ("attribute_not_exists(city)", {}, lambda row: "city" not in row),
    ("contains(#name, :x)", {":x": "County"}, lambda row: "County" in row["name"]),
    ("contains(words, :x)", {":x": "Municipal"}, lambda row: "Municipal" in row["words"]),
    ("begins_with(city, :x)", {":x": "San"}, lambda row: row.get("city", "").startswith("San")),
    ("#where.point[1] < :x", {":x": -100}, lambda row: row["where"]["point"][1] < -100),
    (
        "#where.country.#name <> :x",
        {":x": "USA"},
        lambda row: row["where"]["country"]["name"] != "USA",
    ),
    ("city < :x", {":x": "C"}, lambda row: "city" in row and row["city"].encode() < b"C"),
    ("city = #name", {}, lambda row: row.get("city") == row["name"]),
    ("size(words) > :x", {":x": 3}, lambda row: len(row["words"]) > 3),
    ("size(#name) <= :x", {":x": 6}, lambda row: len(row["name"].encode()) <= 6),
    ("size(#where.point) = :x", {":x": 2}, lambda _: True),
    ("attribute_type(city, :x)", {":x": "S"}, lambda row: "city" in row),
    (
        "city IN (:x, :y)",
        {":x": "Paris", ":y": "Berlin"},
        lambda row: row.get("city") in ("Paris", "Berlin"),
    ),
    (
        "NOT contains(#name, :x) AND (latitude < :y OR attribute_not_exists(city))",
        {":x": "Airport", ":y": 30},
        lambda row: "Airport" not in row["name"] and (row["latitude"] < 30 or "city" not in row),
    ),
    (
        "#where.point = :x",
        {":x": [Decimal("31.95376472"), Decimal("-89.23450472")]},
        lambda row: row["iata"] == "00M",
    ),
]


@pytest.mark.parametrize(("expression", "values", "holds"), FILTERS, ids=[f[0] for f in FILTERS])
def test_filters_of_scans_and_queries_leave_what_python_leaves(
    airports: Airports, expression: str, values: dict[str, Any], holds: Callable[[Row], bool]
):
    names = {name: name[1:] for name in ("#name", "#where") if name in expression}
    members: dict[str, Any] = {"FilterExpression": expression}
    scan = members | {
        "ExpressionAttributeNames": names or None,
        "ExpressionAttributeValues": {
            name: _serializer.serialize(value) for name, value in values.items()
        }
        or None,
    }
    found = [
        row
        for page in airports.pages(lambda **m: airports.ask("Scan", **m), **scan)
        for row in page
    ]
    assert same(found, [row for row in airports.rows if holds(row)])
    for state in airports.states[:20]:
        in_state, answer = airports.query(state, names=names, values=values, **members)
        partition = airports.of(state, None)
        assert same(in_state, [row for row in partition if holds(row)])
        assert answer["ScannedCount"] == len(partition)


PROJECTIONS: list[tuple[str, Callable[[Row], Row]]] = [
    ("iata", lambda row: {"iata": row["iata"]}),
    (
        "#name, city, latitude",
        lambda row: {key: row[key] for key in ("name", "city", "latitude") if key in row},
    ),
    ("#where.point[0]", lambda row: {"where": {"point": row["where"]["point"][:1]}}),
    (
        "#where.point[1], #where.country.#name, words",
        lambda row: {
            "where": {"point": row["where"]["point"][1:], "country": row["where"]["country"]},
            "words": row["words"],
        },
    ),
    ("nothing, country.nothing, words[0]", lambda _: {}),
]


@pytest.mark.parametrize("index", [None, "by-latitude", "by-city"])
@pytest.mark.parametrize(("projection", "cut"), PROJECTIONS, ids=[p[0] for p in PROJECTIONS])
def test_projections_cut_what_python_cuts(
    airports: Airports, index: str | None, projection: str, cut: Callable[[Row], Row]
):
    names = {name: name[1:] for name in ("#name", "#where") if name in projection}
    for state in airports.states[::5]:
        # What an index does not hold is fetched from the table, each item as 4 KB of its page.
        pages = airports.pages(
            lambda **m: airports.query(state, index, names=names, **m),  # noqa: B023
            ProjectionExpression=projection,
        )
        found = [row for page in pages for row in page]
        assert same(found, [cut(row) for row in airports.of(state, index)])


@pytest.mark.parametrize("index", [None, "by-latitude", "by-city"])
@pytest.mark.parametrize("forward", [True, False])
def test_pages_of_any_size_are_the_whole_answer(
    airports: Airports, index: str | None, *, forward: bool
):
    chance = random.Random(SEED)
    for state in airports.states:
        whole, _ = airports.query(state, index, ScanIndexForward=forward)
        limit = chance.randint(1, max(len(whole), 2))
        pages = list(
            airports.pages(
                lambda **m: airports.query(state, index, **m),  # noqa: B023
                Limit=limit,
                ScanIndexForward=forward,
            )
        )
        assert [row for page in pages for row in page] == whole
        assert all(len(page) == limit for page in pages[:-1])


@pytest.mark.parametrize("index", [None, "by-latitude", "by-city"])
@pytest.mark.parametrize("total", [1, 3, 16])
def test_segments_and_pages_of_a_scan_are_the_whole_table(
    airports: Airports, index: str | None, total: int
):
    found = [
        row
        for segment in range(total)
        for page in airports.pages(
            lambda **m: airports.ask("Scan", **m),
            IndexName=index,
            Segment=segment,
            TotalSegments=total,
            Limit=97,
        )
        for row in page
    ]
    expected = [row for row in airports.rows if SORT_KEYS[index] in row]
    assert same(found, held(expected, index))


def test_counts_are_pythons(airports: Airports):
    by_state = Counter(row["state"] for row in airports.rows)
    for state, count in by_state.items():
        _, answer = airports.query(state, Select="COUNT")
        assert answer == {"Count": count, "ScannedCount": count}
    described = airports.wire("DescribeTable", {"TableName": airports.table})["Table"]
    assert described["ItemCount"] == 3376
    by_name = {index["IndexName"]: index for index in described["LocalSecondaryIndexes"]}
    assert by_name["by-city"]["ItemCount"] == sum("city" in row for row in airports.rows)


def test_every_row_is_got_by_its_key(airports: Airports):
    for at in range(0, len(airports.rows), 100):
        some = airports.rows[at : at + 100]
        keys = [{"state": {"S": row["state"]}, "iata": {"S": row["iata"]}} for row in some]
        request = {"RequestItems": {airports.table: {"Keys": keys}}}
        answer = airports.wire("BatchGetItem", request)
        found = [
            {name: _deserializer.deserialize(value) for name, value in item.items()}
            for item in answer["Responses"][airports.table]
        ]
        assert same(found, some)


def test_updates_and_deletes_move_rows_as_python_moves_them(airports: Airports):
    """Last of all: a tenth of the rows is changed, a tenth deleted, and all is compared again."""
    chance = random.Random(SEED)
    for row in chance.sample(airports.rows, 340):
        key = {name: _serializer.serialize(row[name]) for name in ("state", "iata")}
        row["latitude"] = -row["latitude"]
        row["city"] = row["name"][::-1]
        airports.wire(
            "UpdateItem",
            {
                "TableName": airports.table,
                "Key": key,
                "UpdateExpression": "SET latitude = :zero - latitude, city = :city",
                "ExpressionAttributeValues": {":zero": {"N": "0"}, ":city": {"S": row["city"]}},
            },
        )
    for row in chance.sample(airports.rows, 340):
        key = {name: _serializer.serialize(row[name]) for name in ("state", "iata")}
        answer = airports.wire(
            "DeleteItem", {"TableName": airports.table, "Key": key, "ReturnValues": "ALL_OLD"}
        )
        old = {n: _deserializer.deserialize(value) for n, value in answer["Attributes"].items()}
        assert same([old], [row])
        airports.rows.remove(row)
    for state in airports.states:
        for index, sort_key in SORT_KEYS.items():
            found, _ = airports.query(state, index)
            assert same(found, held(airports.of(state, index), index))
            assert in_order(found, sort_key)

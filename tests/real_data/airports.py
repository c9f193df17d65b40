"""The 3,376 airports that come with ``vega-datasets``.

The data have names with quotes and accents, decimals of different lengths, and missing cities.
"""

from __future__ import annotations

import csv
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

from tests.real_data.data_set import Change, DataSet, Filter, Index, Projection, Row


def _rows() -> list[Row]:
    """The airports as Python values; an unknown city is left out of its row."""
    package = find_spec("vega_datasets")
    assert package is not None
    assert package.origin is not None
    # Without an import of the package, which would import pandas in each worker.
    path = Path(package.origin).parent / "_data" / "airports.csv"
    with path.open(newline="", encoding="utf-8") as file:
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


_FILTERS = (
    Filter("latitude > :x", {":x": Decimal("40.5")}, lambda row: row["latitude"] > Decimal("40.5")),
    Filter(
        "latitude BETWEEN :x AND :y",
        {":x": Decimal(30), ":y": Decimal(35)},
        lambda row: 30 <= row["latitude"] <= 35,
    ),
    Filter("attribute_exists(city)", {}, lambda row: "city" in row),
    Filter("attribute_not_exists(city)", {}, lambda row: "city" not in row),
    Filter("contains(#name, :x)", {":x": "County"}, lambda row: "County" in row["name"]),
    Filter("contains(words, :x)", {":x": "Municipal"}, lambda row: "Municipal" in row["words"]),
    Filter(
        "begins_with(city, :x)", {":x": "San"}, lambda row: row.get("city", "").startswith("San")
    ),
    Filter("#where.point[1] < :x", {":x": -100}, lambda row: row["where"]["point"][1] < -100),
    Filter(
        "#where.country.#name <> :x",
        {":x": "USA"},
        lambda row: row["where"]["country"]["name"] != "USA",
    ),
    Filter("city < :x", {":x": "C"}, lambda row: "city" in row and row["city"].encode() < b"C"),
    Filter("city = #name", {}, lambda row: row.get("city") == row["name"]),
    Filter("size(words) > :x", {":x": 3}, lambda row: len(row["words"]) > 3),
    Filter("size(#name) <= :x", {":x": 6}, lambda row: len(row["name"].encode()) <= 6),
    Filter("size(#where.point) = :x", {":x": 2}, lambda _: True),
    Filter("attribute_type(city, :x)", {":x": "S"}, lambda row: "city" in row),
    Filter(
        "city IN (:x, :y)",
        {":x": "Paris", ":y": "Berlin"},
        lambda row: row.get("city") in ("Paris", "Berlin"),
    ),
    Filter(
        "NOT contains(#name, :x) AND (latitude < :y OR attribute_not_exists(city))",
        {":x": "Airport", ":y": 30},
        lambda row: "Airport" not in row["name"] and (row["latitude"] < 30 or "city" not in row),
    ),
    Filter(
        "#where.point = :x",
        {":x": [Decimal("31.95376472"), Decimal("-89.23450472")]},
        lambda row: row["iata"] == "00M",
    ),
)

_PROJECTIONS = (
    Projection("iata", lambda row: {"iata": row["iata"]}),
    Projection(
        "#name, city, latitude",
        lambda row: {key: row[key] for key in ("name", "city", "latitude") if key in row},
    ),
    Projection("#where.point[0]", lambda row: {"where": {"point": row["where"]["point"][:1]}}),
    Projection(
        "#where.point[1], #where.country.#name, words",
        lambda row: {
            "where": {"point": row["where"]["point"][1:], "country": row["where"]["country"]},
            "words": row["words"],
        },
    ),
    Projection("nothing, country.nothing, words[0]", lambda _: {}),
)


def _move(row: Row) -> None:
    row["latitude"] = -row["latitude"]
    row["city"] = row["name"][::-1]


AIRPORTS = DataSet(
    name="airports",
    read=_rows,
    row_count=3376,
    partition="state",
    table=Index(None, "iata", "S"),
    local_indexes=(
        Index("by-latitude", "latitude", "N"),
        Index("by-city", "city", "S", ("name", "where")),
    ),
    names={"#name": "name", "#where": "where"},
    filters=_FILTERS,
    projections=_PROJECTIONS,
    change=Change(
        "SET latitude = :zero - latitude, city = :city",
        lambda row: {":zero": 0, ":city": row["name"][::-1]},
        _move,
    ),
)

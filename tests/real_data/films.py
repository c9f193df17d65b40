"""The 3,201 films of ``vega-datasets``: numeric titles, nulls, broken accents, equal ratings.

The Python package downloads them on use, the npm package contains them.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from tests.real_data.data_set import Change, DataSet, Filter, Index, Projection, Row

PACKAGE = "vega-datasets@2.11.0"
FILE = "data/movies.json"


def films(file: Path) -> DataSet:
    """The films, once their file is available."""
    return DataSet(
        name="films",
        read=partial(_rows, file),
        row_count=3201,
        partition="Major Genre",
        table=Index(None, "Film", "S"),
        local_indexes=(
            Index("by-rating", "IMDB Rating", "N"),
            Index("by-director", "Director", "S", ("Title", "Money")),
        ),
        names=_NAMES,
        filters=_FILTERS,
        projections=_PROJECTIONS,
        change=Change(
            "SET #rating = if_not_exists(#rating, :ten) - :ten, #source = Title"
            " REMOVE #director, Ratings[0]",
            lambda _: {":ten": 10},
            _move,
        ),
    )


def _rows(file: Path) -> list[Row]:
    """The films as Python values; an unknown value is null, or missing if it is an index key."""
    lines = json.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
    return [_row(number, line) for number, line in enumerate(lines, 1)]


def _row(number: int, line: dict[str, Any]) -> Row:
    row = {
        **line,
        "Major Genre": line["Major Genre"] or "No genre",
        # Two films may share a title, and all keys must be texts.
        "Film": f"{line['Title']} #{number}",
        "Money": {name: line[name] for name in ("US Gross", "Worldwide Gross", "US DVD Sales")},
        "Ratings": [line["IMDB Rating"], line["Rotten Tomatoes Rating"]],
        "Words": set(str(line["Title"]).split()),
    }
    amounts = {line[name] for name in ("US Gross", "Worldwide Gross", "Production Budget")}
    if amounts != {None}:
        row["Amounts"] = amounts - {None}
    for key in ("IMDB Rating", "Director"):
        if row[key] is None:
            del row[key]
    return row


_NAMES = {
    "#budget": "Production Budget",
    "#date": "Release Date",
    "#director": "Director",
    "#dvd": "US DVD Sales",
    "#gross": "US Gross",
    "#minutes": "Running Time min",
    "#rating": "IMDB Rating",
    "#source": "Source",
    "#worldwide": "Worldwide Gross",
}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal)


_FILTERS = (
    Filter("Title > :x", {":x": 300}, lambda row: _is_number(row["Title"]) and row["Title"] > 300),
    Filter(
        "Title < :x",
        {":x": "2"},
        lambda row: _is_text(row["Title"]) and row["Title"].encode() < b"2",
    ),
    Filter("Title <> :x", {":x": 300}, lambda row: row["Title"] != 300),
    Filter(
        "Title IN (:x, :y, :z)",
        {":x": 1776, ":y": "1776", ":z": None},
        lambda row: row["Title"] in (1776, "1776", None),
    ),
    Filter("Title = :x", {":x": "Alien³"}, lambda row: row["Title"] == "Alien³"),
    Filter(
        "contains(Title, :x)",
        {":x": "È"},
        lambda row: _is_text(row["Title"]) and "È" in row["Title"],
    ),
    Filter("contains(Words, :x)", {":x": "the"}, lambda row: "the" in row["Words"]),
    Filter(
        "size(Title) > :x",
        {":x": 40},
        lambda row: _is_text(row["Title"]) and len(row["Title"].encode()) > 40,
    ),
    Filter("attribute_type(Title, :x)", {":x": "N"}, lambda row: _is_number(row["Title"])),
    Filter("attribute_type(#dvd, :x)", {":x": "NULL"}, lambda row: row["US DVD Sales"] is None),
    Filter("attribute_exists(#dvd)", {}, lambda _: True),
    Filter("attribute_not_exists(#rating)", {}, lambda row: "IMDB Rating" not in row),
    Filter("#rating <> :x", {":x": 7}, lambda row: row.get("IMDB Rating") != 7),
    Filter(
        "#minutes BETWEEN :x AND :y",
        {":x": 80, ":y": Decimal("90.5")},
        lambda row: row["Running Time min"] is not None and 80 <= row["Running Time min"] <= 90.5,
    ),
    Filter("#gross = #worldwide", {}, lambda row: row["US Gross"] == row["Worldwide Gross"]),
    Filter(
        "Money.#worldwide > #budget",
        {},
        lambda row: (
            row["Worldwide Gross"] is not None
            and row["Production Budget"] is not None
            and row["Worldwide Gross"] > row["Production Budget"]
        ),
    ),
    Filter("Ratings[1] = :x", {":x": None}, lambda row: row["Ratings"][1] is None),
    Filter("contains(Ratings, :x)", {":x": None}, lambda row: None in row["Ratings"]),
    Filter("contains(Amounts, :x)", {":x": 0}, lambda row: 0 in row.get("Amounts", ())),
    Filter("size(Amounts) < :x", {":x": 3}, lambda row: 0 < len(row.get("Amounts", ())) < 3),
    Filter(
        "begins_with(#date, :x) AND NOT (#source = :y OR attribute_type(#source, :z))",
        {":x": "Jun", ":y": "Original Screenplay", ":z": "NULL"},
        lambda row: (
            row["Release Date"].startswith("Jun")
            and row["Source"] not in ("Original Screenplay", None)
        ),
    ),
)

_PROJECTIONS = (
    Projection("Film", lambda row: {"Film": row["Film"]}),
    Projection(
        "Title, #rating, #director, #dvd",
        lambda row: {
            key: row[key]
            for key in ("Title", "IMDB Rating", "Director", "US DVD Sales")
            if key in row
        },
    ),
    Projection(
        "Money.#dvd, Ratings[1]",
        lambda row: {
            "Money": {"US DVD Sales": row["US DVD Sales"]},
            "Ratings": row["Ratings"][1:],
        },
    ),
    Projection(
        "Amounts, Words, Money",
        lambda row: {key: row[key] for key in ("Amounts", "Words", "Money") if key in row},
    ),
    Projection("Title[0], #gross.#dvd, Ratings[2], nothing", lambda _: {}),
)


def _move(row: Row) -> None:
    row["IMDB Rating"] = row.get("IMDB Rating", 10) - 10
    row["Source"] = row["Title"]
    row.pop("Director", None)
    del row["Ratings"][0]

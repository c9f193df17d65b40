"""Exports in Parquet, read back by DuckDB."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dynactor.api.commands.tables.export_command import ExportOptions, export_table
from dynactor.api.commands.tables.parquet_files import write_parquet
from dynactor.api.commands.tables.terminal_progress import TerminalProgress
from tests.support.clients.database_endpoint import DatabaseEndpoint, no_pause
from tests.support.databases.databases import running_database

CREATION = {
    "TableName": "music",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
ITEMS: list[dict[str, Any]] = [
    {
        "pk": {"S": "a"},
        "price": {"N": "12345678901234567890.125"},
        "wide": {"N": "12345678901234567890123456789012345678"},
        "on": {"BOOL": True},
        "raw": {"B": "AAE="},
        "tags": {"SS": ["x", "y"]},
        "sizes": {"NS": ["1", "2.5"]},
        "address": {"M": {"city": {"S": "Oslo"}, "numbers": {"L": [{"N": "1.10"}]}}},
        "mixed": {"N": "7"},
        "none": {"NULL": True},
    },
    {"pk": {"S": "b"}, "price": {"N": "-3"}, "wide": {"N": "0.5"}, "mixed": {"S": "x"}},
    {"pk": {"S": "c"}, "on": {"NULL": True}},
]


async def exported(tmp_path: Path, *, doubles: bool = False) -> Any:
    async with running_database() as database:
        endpoint = DatabaseEndpoint(database)
        await endpoint.call("CreateTable", CREATION)
        for item in ITEMS:
            await endpoint.call("PutItem", {"TableName": "music", "Item": item})
        options = ExportOptions(segments=2)
        lines = TerminalProgress()
        folder = await export_table(endpoint, "music", tmp_path, options, lines, pause=no_pause)
    directory = await write_parquet(folder, doubles=doubles)
    return duckdb.read_parquet(f"{directory}/*.parquet").order("pk")


async def test_every_value_is_read_back(tmp_path: Path):
    table = await exported(tmp_path)
    types = dict(zip(table.columns, map(str, table.types), strict=True))
    assert types == {
        "pk": "VARCHAR",
        "price": "DECIMAL(23,3)",
        # 38 digits before the point and one after it do not fit.
        "wide": "VARCHAR",
        "on": "BOOLEAN",
        "raw": "BLOB",
        "tags": "VARCHAR[]",
        "sizes": "DECIMAL(2,1)[]",
        "address": "VARCHAR",
        "mixed": "VARCHAR",
        "none": "VARCHAR",
    }
    first, second, third = [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]
    assert first.pop("address") == '{"city":"Oslo","numbers":[1.1]}'
    assert first == {
        "pk": "a",
        "price": Decimal("12345678901234567890.125"),
        "wide": "12345678901234567890123456789012345678",
        "on": True,
        "raw": b"\x00\x01",
        "tags": ["x", "y"],
        "sizes": [Decimal("1.0"), Decimal("2.5")],
        "mixed": "7",
        "none": None,
    }
    assert (second["price"], second["wide"], second["mixed"]) == (Decimal("-3.000"), "0.5", '"x"')
    assert json.loads(second["mixed"]) == "x"
    assert {name for name, value in third.items() if value is not None} == {"pk"}


async def test_numbers_are_doubles_only_on_request(tmp_path: Path):
    table = await exported(tmp_path, doubles=True)
    types = dict(zip(table.columns, map(str, table.types), strict=True))
    assert (types["price"], types["wide"], types["sizes"]) == ("DOUBLE", "DOUBLE", "DOUBLE[]")
    [first, *_] = table.fetchall()
    assert first[table.columns.index("price")] == pytest.approx(12345678901234567890.125)

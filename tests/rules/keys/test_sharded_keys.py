"""A8, A9, S145-S148: suffixes distribute the writes of a hot key over several partition keys."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.servers.admin import admin_port
from tests.support.servers.server import PROJECT, Server, running_server
from tests.support.tables.tables import definition, table

Item = dict[str, dict[str, Any]]

# The rows of AWS's example: invoice number with suffix, transaction, date.
ROWS = (
    ("121212-1", "Cliente1_Trans1", "2016-05-17 01.36.45"),
    ("121212-1", "Cliente1_Trans2", "2016-05-18 01.36.30"),
    ("121212-2", "Cliente2_Trans1", "2016-06-15 01.36.20"),
    ("121212-2", "Cliente2_Trans2", "2016-07-01 01.36.15"),
)
SUFFIXES = range(1, 6)


def row(invoice: str, transaction: str, date: str) -> Item:
    texts = {"PK": invoice, "SK": transaction, "Date": date}
    return {name: {"S": text} for name, text in texts.items()}


@pytest.fixture(scope="module")
def invoices(wire: WireClient) -> Iterator[str]:
    with table(wire, "PK:S", "SK:S") as name:
        for columns in ROWS:
            wire("PutItem", {"TableName": name, "Item": row(*columns)})
        yield name


def query(wire: WireClient, name: str, invoice: str, prefix: str | None = None) -> list[Item]:
    condition, values = "PK = :invoice", {":invoice": {"S": invoice}}
    if prefix is not None:
        condition += " AND begins_with(SK, :prefix)"
        values[":prefix"] = {"S": prefix}
    request = {
        "TableName": name,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
    }
    found: list[Item] = wire("Query", request)["Items"]
    return found


def test_a8_a_client_has_two_transactions_under_a_suffix(wire, invoices):
    found = query(wire, invoices, "121212-1", "Cliente1")

    assert found == [row(*ROWS[0]), row(*ROWS[1])]


def test_s146_the_invoice_table_has_its_suffixed_number_and_the_clients_transaction_as_keys(
    wire, invoices
):
    for columns in ROWS:
        key = {"PK": {"S": columns[0]}, "SK": {"S": columns[1]}}
        assert wire("GetItem", {"TableName": invoices, "Key": key})["Item"] == row(*columns)


def test_s147_a_query_reads_one_suffix_by_a_prefix_of_the_sort_key(wire, invoices):
    assert query(wire, invoices, "121212-2", "Cliente2_Trans2") == [row(*ROWS[3])]
    assert query(wire, invoices, "121212-1", "Cliente2") == []


def test_s148_the_same_query_on_each_suffix_reads_a_whole_invoice(wire, invoices):
    of_suffix = [query(wire, invoices, f"121212-{suffix}") for suffix in SUFFIXES]

    assert [len(found) for found in of_suffix] == [2, 2, 0, 0, 0]
    assert [item for found in of_suffix for item in found] == [row(*columns) for columns in ROWS]


# -- the advisor ----------------------------------------------------------------------------

ours = pytest.mark.ours_alone("no other server gives advice")


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with running_server("--admin-port", "0") as server:
        with closing(WireClient(server.endpoint)) as wire:
            wire("CreateTable", definition("PK:S", "SK:S", name="Invoices"))
        yield server


def suffixes(server: Server, writes_per_second: float, item_size_bytes: int) -> int:
    """The number of suffixes that ``dynactor advise`` recommends."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "dynactor", "advise", "--table", "Invoices", "--json"),
            *("--endpoint", server.endpoint),
            *("--admin-endpoint", f"http://127.0.0.1:{admin_port(server)}"),
            *("--writes-per-second", str(writes_per_second)),
            *("--item-size-bytes", str(item_size_bytes)),
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    (found,) = (each for each in json.loads(done.stdout)["findings"] if "A9" in each["rules"])
    number: int = found["suffixes"]
    return number


@ours
@pytest.mark.parametrize(
    ("writes_per_second", "item_size_bytes", "wanted"),
    [(5_000, 1_024, 5), (5_000, 1_536, 10), (1_000, 1_024, 1), (1_001, 1_024, 2)],
)
def test_a9_the_advisor_recommends_the_number_of_suffixes_of_the_formula(
    served, writes_per_second, item_size_bytes, wanted
):
    assert suffixes(served, writes_per_second, item_size_bytes) == wanted


@ours
def test_s145_suffixes_are_the_writes_times_the_items_kilobytes_over_a_thousand(served):
    assert suffixes(served, 5_000, 1_024) == 5
    # The item size is rounded up to whole kilobytes, and then the number of suffixes is rounded up.
    assert suffixes(served, 5_000, 1_025) == 10
    assert suffixes(served, 250, 4_097) == 2

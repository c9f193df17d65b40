"""Files of items in the console: types of columns, exports of all pages, and refused records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page, expect

from dynactor.model.files.csv_columns import CsvTypes
from dynactor.model.files.records import Csv, Record
from tests.console.conftest import Console, create_table
from tests.properties import strategies
from tests.support.clients.clients import boto3_client
from tests.support.servers.server import Server

ITEMS = 120
# Playwright's own encoding of arguments loses attributes with the name __proto__.
READ = """async (given) => {
  const [files, keys, declared] = JSON.parse(given);
  const { itemFile } = await import('/console/app/item_file.js');
  const read = async ([name, text]) => {
    const file = await itemFile(new File([text], name), keys, declared);
    return file.records(file.columns).map(({ line, item, problem }) => [line, item ?? problem]);
  };
  return JSON.stringify(await Promise.all(files.map(read)));
}"""
WRITE = """async (given) => {
  const [items, keys] = JSON.parse(given);
  const { csvOf } = await import('/console/app/csv.js');
  const { attributesOf } = await import('/console/app/values.js');
  try {
    return csvOf(items, attributesOf(items, keys), keys).join('');
  } catch (error) {
    return null;
  }
}"""

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.text(',"\r\n:[{}\ufeff\ufffd 0', max_size=6),
)
names = st.one_of(
    st.sampled_from(("a", "b", "zip", "a:S", "x:N:N", "__proto__", "constructor")),
    texts.filter(bool),
)
values = st.one_of(strategies.values, st.builds(lambda text: {"S": text}, texts))
rows = st.lists(st.dictionaries(names, values, max_size=4), max_size=4)


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Any]:
    with closing(boto3_client(server.endpoint)) as client:
        create_table(client, "files", "pk", "sk")
        create_table(client, "copies", "pk", "sk")
        yield client


def item(number: int) -> dict[str, Any]:
    return {
        "pk": {"S": "all"},
        "sk": {"S": f"{number:03}"},
        "zip": {"S": f"{number:05}"},
        "price": {"N": f"{number}.5"},
        "mixed": {"N": "1"} if number % 2 else {"S": ""},
        "document": {"M": {"tags": {"SS": ["a", "b"]}, "list": {"L": [{"NULL": True}]}}},
        **({"binaries": {"BS": ["AAE="]}} if number % 3 == 0 else {}),
    }


def all_items(client: Any, table: str, partition: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.query(
        TableName=table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": partition}},
        ConsistentRead=True,
    )["Items"]
    return found


def read_files(page: Page, files: list[list[str]], key: str, **declared: str) -> list[Any]:
    """The line and the item or the problem of each record of each file."""
    given = json.dumps([files, [key], {key: "S", **declared}])
    found: list[Any] = json.loads(page.evaluate(READ, given))
    return found


def choose_file(page: Page, path: Path) -> Any:
    page.get_by_role("button", name="Import").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("File").set_input_files(path)
    return dialog


def test_exported_items_are_imported_equal_by_the_console_and_the_server(console: Console):
    page = console.open("tables")

    @settings(
        max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(rows, st.sampled_from(("pk", "a:S")), texts.filter(bool))
    def check(rows: list[dict[str, Any]], key: str, text: str) -> None:
        items = [{**row, key: {"S": f"{at}{text}"}} for at, row in enumerate(rows)]
        exported = page.evaluate(WRITE, json.dumps([items, [key]]))
        if exported is None:
            # The name of a column would be the key's: "a" of the type S beside the key "a:S".
            assert key == "a:S"
            assert any("a" in row for row in rows)
            return
        [read] = read_files(page, [["a.csv", exported]], key)
        assert [found for _, found in read] == items
        records = Csv(CsvTypes([key], {key: "S"}), ",", None)
        found = [*records.feed(exported.encode()), *records.end()]
        assert [each.item for each in found if isinstance(each, Record)] == items
        assert [each.line for each in found] == [line for line, _ in read]

    check()


def test_files_of_items_are_read_in_their_forms_with_the_lines_of_their_faults(console: Console):
    page = console.open("tables")
    a, b = {"pk": {"S": "a"}}, {"pk": {"S": "b"}}
    forms: dict[str, tuple[str, list[Any]]] = {
        "array.json": ('\n[{"pk": {"S": "a"}},\n\n{"pk":\n{"S": "b"}}]', [[2, a], [4, b]]),
        "lines.json": ('{"pk": {"S": "a"}}\n\n{"pk": {"S": "b"}}\n', [[1, a], [3, b]]),
        "one.json": ('{\n  "pk": {"S": "a"}\n}', [[1, a]]),
        "export.json": ('{"Item": {"pk": {"S": "a"}}}\n', [[1, a]]),
        "faults.json": (
            '[{"pk": {"S": "a"}},\n{"pk": {"S": 5}},\n{"pk": [{"S": "]"}]}]',
            [
                [1, a],
                [2, "pk has no content of the type String"],
                [3, 'pk needs one type, such as {"S": "text"} or {"N": "1"}'],
            ],
        ),
        "looks.csv": (
            'pk,n,zip,tags,empty\n007,12,01234,"[""x""]",\n\n"two\r\nlines",1.10,x,y,\n',
            [
                [
                    2,
                    {
                        "pk": {"S": "007"},
                        "n": {"N": "12"},
                        "zip": {"S": "01234"},
                        "tags": {"S": '["x"]'},
                    },
                ],
                [
                    4,
                    {
                        "pk": {"S": "two\r\nlines"},
                        "n": {"N": "1.10"},
                        "zip": {"S": "x"},
                        "tags": {"S": "y"},
                    },
                ],
            ],
        ),
        "typed.csv": (
            'pk:S,JSON:N,x:M\na,,"{""y"":{""BOOL"":true}}"\na,one,\na\n"b"c,1,\na,1,2\nb,"1',
            [
                [2, {**a, "x": {"M": {"y": {"BOOL": True}}}}],
                [3, "JSON: the cell is not a number"],
                [4, "The record has 1 columns, the header has 3"],
                [5, "A cell goes on after its quote or after a carriage return"],
                [6, "x has no content of the type Map"],
                [7, "A quote has no end"],
            ],
        ),
    }
    files = [[name, text] for name, (text, _) in forms.items()]
    found = read_files(page, files, "pk", n="N")
    assert dict(zip(forms, found, strict=True)) == {
        name: expected for name, (_, expected) in forms.items()
    }


@pytest.mark.parametrize("form", ["CSV", "DynamoDB JSON"])
def test_all_pages_are_exported_and_imported_equal(
    console: Console, client: Any, tmp_path: Path, form: str
):
    for number in range(ITEMS):
        client.put_item(TableName="files", Item=item(number))
    page = console.open("table/files/items?mode=query&partition=%5B%22all%22%5D&limit=50")
    expect(page.get_by_role("status")).to_contain_text("50 items")
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name=f"All pages as {form}").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    expect(page.get_by_role("note")).to_contain_text(f"{ITEMS} items exported")

    dialog = choose_file(console.open("table/copies/items"), path)
    expect(dialog.get_by_role("status")).to_have_text(f"{ITEMS} items")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog.get_by_role("status")).to_contain_text(f"{ITEMS} of {ITEMS} items imported")
    copied = all_items(client, "copies", "all")
    assert copied == all_items(client, "files", "all")
    for each in copied:
        key = {"pk": each["pk"], "sk": each["sk"]}
        client.delete_item(TableName="copies", Key=key)


def test_the_type_of_a_column_is_chosen_before_the_import(
    console: Console, client: Any, tmp_path: Path
):
    path = tmp_path / "chosen.csv"
    path.write_text("pk,sk,version,price\nchosen,1,1.10,1.50\nchosen,2,1.20,cheap\n")
    dialog = choose_file(console.open("table/files/items"), path)
    expect(dialog.get_by_label("Type of version")).to_have_value("S")
    expect(dialog.get_by_role("status")).to_have_text("2 items")
    dialog.get_by_label("Type of price").select_option("N")
    expect(dialog.get_by_role("status")).to_have_text("1 item, 1 record not imported")
    expect(dialog.get_by_label("Records not imported")).to_contain_text(
        "Line 3: price: the cell is not a number"
    )
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog.get_by_role("status")).to_contain_text("1 of 1 item imported")
    key = {"pk": {"S": "chosen"}, "sk": {"S": "1"}}
    expected = key | {"version": {"S": "1.10"}, "price": {"N": "1.5"}}
    assert all_items(client, "files", "chosen") == [expected]


def test_an_import_goes_on_after_refused_records_and_lists_them(
    console: Console, client: Any, tmp_path: Path
):
    path = tmp_path / "refused.csv"
    lines = [f"refused,{number:03},{number}" for number in range(40)]
    lines[7] = "refused,,7"
    lines[20] = f"refused,020,{'x' * 410_000}"
    lines[30] = "refused,031,early"
    lines[35] = "refused,035,\x80,more"
    path.write_bytes("\n".join(["pk,sk,note", *lines]).encode("latin-1"))
    page = console.open("table/files/items")
    dialog = choose_file(page, path)
    expect(dialog.get_by_role("status")).to_have_text("38 items, 2 records not imported")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog.get_by_role("status")).to_have_text(
        "36 of 38 items imported, 4 records not imported"
    )
    listed = dialog.get_by_label("Records not imported").get_by_role("listitem")
    assert listed.all_inner_texts() == [
        "Line 9: The provided key element does not match the schema",
        "Line 22: Item size has exceeded the maximum allowed size",
        "Line 32: A later item has the same key",
        "Line 37: The record is not UTF-8",
    ]
    dialog.get_by_role("button", name="Close", exact=True).last.click()
    assert len(all_items(client, "files", "refused")) == 36

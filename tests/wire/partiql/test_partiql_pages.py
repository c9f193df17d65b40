"""Pages of a SELECT: Limit and NextToken."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.partiql import pages, plain, statement, typed
from tests.support.tables.tables import unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

KEYS = ("a", "b", "c", "d", "e")
# A quarter of the page size of 1 MB.
FILLING = "x" * 262_144


@pytest.fixture(scope="module")
def letters(wire: WireClient, composite: str) -> str:
    """Three partition keys with 5 items each; the keys are the returned text with 1, 2 or 3."""
    pk = unique_name("letters")
    for partition in "123":
        for sort in KEYS:
            item = typed({"pk": pk + partition, "sk": sort, "v": int(partition)})
            wire("PutItem", {"TableName": composite, "Item": item})
    return pk


@pytest.fixture(scope="module")
def large(wire: WireClient, composite: str) -> Iterator[str]:
    """Four partition keys with 2 items each; an item has a quarter of the page size."""
    pk = unique_name("large")
    for partition in "1234":
        for sort in "ab":
            item = typed({"pk": pk + partition, "sk": sort, "filling": FILLING})
            wire("PutItem", {"TableName": composite, "Item": item})
    yield pk
    for partition in "1234":
        for sort in "ab":
            key = typed({"pk": pk + partition, "sk": sort})
            wire("DeleteItem", {"TableName": composite, "Key": key})


def select(table: str, where: str) -> str:
    return f'SELECT pk, sk FROM "{table}" WHERE {where}'


def of_all(pk: str) -> str:
    return f"pk IN ['{pk}2', '{pk}1', '{pk}3']"


def places(answer: dict[str, Any]) -> list[str]:
    items = [plain(item) for item in answer["Items"]]
    return [item["pk"][-1] + item["sk"] for item in items]


@pytest.mark.parametrize(
    ("limit", "sizes"), [(1, [1, 1, 1, 1, 1, 0]), (2, [2, 2, 1]), (5, [5, 0]), (6, [5])]
)
def test_a_partition_is_read_page_by_page(
    wire: WireClient, composite: str, letters: str, limit: int, sizes: list[int]
) -> None:
    answers = list(pages(wire, select(composite, f"pk = '{letters}1'"), Limit=limit))
    assert [len(answer["Items"]) for answer in answers] == sizes
    assert [place for answer in answers for place in places(answer)] == [f"1{k}" for k in KEYS]


@differs_from_dynamodb_local("returns all items at once")
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7, 9, 10, 11, 16])
def test_several_partitions_are_read_page_by_page(
    wire: WireClient, composite: str, letters: str, limit: int
) -> None:
    answers = list(pages(wire, select(composite, of_all(letters)), Limit=limit))
    everything = [f"{partition}{key}" for partition in "123" for key in KEYS]
    assert [place for answer in answers for place in places(answer)] == everything
    assert all(len(answer["Items"]) == min(limit, 10) for answer in answers[:-1])


@differs_from_dynamodb_local("answers with an internal failure")
@pytest.mark.parametrize("limit", [1, 4, 7])
def test_several_partitions_are_read_backward_page_by_page(
    wire: WireClient, composite: str, letters: str, limit: int
) -> None:
    text = select(composite, of_all(letters)) + " ORDER BY pk DESC, sk DESC"
    answers = list(pages(wire, text, Limit=limit))
    everything = [f"{partition}{key}" for partition in "321" for key in reversed(KEYS)]
    assert [place for answer in answers for place in places(answer)] == everything


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_scan_is_read_page_by_page(
    wire: WireClient, composite: str, letters: str, limit: int
) -> None:
    text = select(composite, f"begins_with(pk, '{letters}')")
    found = [place for answer in pages(wire, text, Limit=limit) for place in places(answer)]
    assert sorted(found) == [f"{partition}{key}" for partition in "123" for key in KEYS]


@differs_from_dynamodb_local("scans where a filter names a key")
def test_a_limit_counts_the_items_that_are_read_before_the_filter(
    wire: WireClient, composite: str, letters: str
) -> None:
    text = select(composite, f"pk = '{letters}1' AND NOT sk IN ['a', 'b', 'd']")
    found = [places(answer) for answer in pages(wire, text, Limit=2)]
    assert found == [[], ["1c"], ["1e"]]


def test_parameters_stay_the_same_from_page_to_page(
    wire: WireClient, composite: str, letters: str
) -> None:
    text = select(composite, "pk = ? AND sk > ?")
    found = [places(answer) for answer in pages(wire, text, f"{letters}1", "a", Limit=2)]
    assert found == [["1b", "1c"], ["1d", "1e"], []]


@differs_from_dynamodb_local("reads an empty page after each item")
@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1, [["a"], ["b"], ["d"]]),
        (2, [["a", "b"], ["d"]]),
        (3, [["a", "b", "d"]]),
        (4, [["a", "b", "d"]]),
    ],
)
def test_keys_of_one_item_are_read_without_empty_pages(
    wire: WireClient, simple: str, pk: str, limit: int, expected: list[list[str]]
) -> None:
    for key in "abd":
        wire("PutItem", {"TableName": simple, "Item": typed({"pk": pk + key})})
    keys = ", ".join(f"'{pk}{key}'" for key in "abcd")
    text = f'SELECT * FROM "{simple}" WHERE pk IN [{keys}]'
    answers = list(pages(wire, text, Limit=limit, ReturnConsumedCapacity="TOTAL"))
    found = [[plain(item)["pk"].removeprefix(pk) for item in answer["Items"]] for answer in answers]
    assert found == expected
    # Each of the four keys costs one read of at most 4 KB, as in four Queries.
    assert sum(answer["ConsumedCapacity"]["CapacityUnits"] for answer in answers) == 4 * 0.5
    assert "LastEvaluatedKey" not in answers[-1]


@differs_from_dynamodb_local("returns all items at once")
def test_several_keys_are_answered_in_pages_of_10_items(
    wire: WireClient, simple: str, pk: str
) -> None:
    names = [f"{pk}{number:02}" for number in range(30)]
    for name in names:
        wire("PutItem", {"TableName": simple, "Item": typed({"pk": name})})
    keys = ", ".join(f"'{name}'" for name in names)
    answers = list(pages(wire, f'SELECT * FROM "{simple}" WHERE pk IN [{keys}]'))
    assert [len(answer["Items"]) for answer in answers] == [10, 10, 10]
    assert [plain(item)["pk"] for answer in answers for item in answer["Items"]] == names
    # A Scan has no such limit. Other tests fill the table, so it may have several pages.
    read = pages(wire, f"SELECT * FROM \"{simple}\" WHERE begins_with(pk, '{pk}')")
    assert sum(len(answer["Items"]) for answer in read) == 30


@differs_from_dynamodb_local("returns all items at once")
def test_a_partition_is_answered_in_pages_of_10_items_only_if_it_is_read_in_parts(
    wire: WireClient, composite: str, pk: str
) -> None:
    names = [f"{number:02}" for number in range(12)]
    for name in names:
        wire("PutItem", {"TableName": composite, "Item": typed({"pk": pk, "sk": name})})
    keys = ", ".join(f"'{name}'" for name in names)
    for where, sizes in (
        ("", [12]),
        (" AND sk >= '00'", [12]),
        (f" AND sk IN [{keys}]", [10, 2]),
        (" AND (sk < '03' OR sk > '05')", [9]),
        (" AND (sk < '03' OR sk >= '03')", [10, 2]),
    ):
        text = select(composite, f"pk = '{pk}'{where}")
        answers = list(pages(wire, text, ReturnConsumedCapacity="TOTAL"))
        assert [len(answer["Items"]) for answer in answers] == sizes
    text = select(composite, f"pk = '{pk}' AND (sk = '01' OR sk > '08')")
    for limit in (1, 2, 3):
        answers = list(pages(wire, text, Limit=limit))
        found = [item["sk"]["S"] for answer in answers for item in answer["Items"]]
        assert found == ["01", "09", "10", "11"]
    text = select(composite, f"pk = '{pk}' AND sk IN ['01', '05', '03']")
    answers = list(pages(wire, text, Limit=1, ReturnConsumedCapacity="TOTAL"))
    assert [places(answer) for answer in answers] == [[f"{pk}0{n}"[-3:]] for n in (1, 3, 5)]
    # Each key costs one read, whatever the limit.
    assert [answer["ConsumedCapacity"]["CapacityUnits"] for answer in answers] == [0.5] * 3


@differs_from_dynamodb_local("shows no last key")
def test_an_answer_with_a_token_has_the_last_evaluated_key(
    wire: WireClient, composite: str, letters: str
) -> None:
    first, *_, last = pages(wire, select(composite, of_all(letters)), Limit=7)
    assert plain(first["LastEvaluatedKey"]) == {"pk": f"{letters}2", "sk": "b"}
    assert "LastEvaluatedKey" not in last


def test_a_page_ends_after_a_megabyte_of_one_partition_or_several(
    wire: WireClient, composite: str, large: str
) -> None:
    partitions = ", ".join(f"'{large}{partition}'" for partition in "1234")
    text = f'SELECT * FROM "{composite}" WHERE pk IN [{partitions}]'
    answers = list(pages(wire, text))
    assert len(answers) > 1
    assert all(len(answer["Items"]) <= 4 for answer in answers)
    found = [place for answer in answers for place in places(answer)]
    assert found == ["1a", "1b", "2a", "2b", "3a", "3b", "4a", "4b"]


@differs_from_dynamodb_local("tells no consumed capacity")
def test_each_page_reports_the_units_of_its_own_reads(
    wire: WireClient, composite: str, large: str
) -> None:
    partitions = ", ".join(f"'{large}{partition}'" for partition in "1234")
    text = f'SELECT * FROM "{composite}" WHERE pk IN [{partitions}]'
    members = {"ReturnConsumedCapacity": "TOTAL", "ConsistentRead": True}
    units = sum(page["ConsumedCapacity"]["CapacityUnits"] for page in pages(wire, text, **members))
    queries = [
        wire(
            "Query",
            {
                "TableName": composite,
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": {"S": f"{large}{partition}"}},
            }
            | members,
        )
        for partition in "1234"
    ]
    assert units == sum(query["ConsumedCapacity"]["CapacityUnits"] for query in queries)


def token_of(wire: WireClient, text: str, *parameters: Any) -> str:
    answer = wire("ExecuteStatement", statement(text, *parameters, Limit=1))
    token: str = answer["NextToken"]
    return token


@differs_from_dynamodb_local("goes on with any statement")
def test_a_token_is_valid_only_for_its_own_statement(
    wire: WireClient, composite: str, letters: str
) -> None:
    text = select(composite, "pk = ?")
    token = token_of(wire, text, f"{letters}1")
    refusal = ("ValidationException", "NextToken does not match request")
    for other, parameter in (
        (text, f"{letters}2"),
        (text + " ", f"{letters}1"),
        (text.replace("pk, sk", "sk, pk"), f"{letters}1"),
    ):
        request = statement(other, parameter, NextToken=token)
        assert wire.refused("ExecuteStatement", request) == refusal
    # Other members of the request may change from page to page.
    members = {"NextToken": token, "Limit": 2, "ConsistentRead": True}
    answer = wire("ExecuteStatement", statement(text, f"{letters}1", **members))
    assert places(answer) == ["1b", "1c"]


def test_an_invalid_token_is_refused(wire: WireClient, composite: str, letters: str) -> None:
    text = select(composite, f"pk = '{letters}1'")
    token = token_of(wire, text)
    for broken in ("abc", token[:-8], "A" * 40):
        refusal = wire.refused("ExecuteStatement", statement(text, NextToken=broken))
        assert refusal == ("ValidationException", "Invalid NextToken")


@pytest.mark.ours_alone("it makes tokens of this server's form")
@pytest.mark.parametrize(
    ("at", "value"),
    [
        (0, 2),
        (2, 1),
        (2, -1),
        (2, 10**30),
        (3, {"pk": {"S": "elsewhere"}, "sk": {"S": "a"}}),
        (3, {"pk": {"S": "elsewhere"}}),
        (3, {"pk": {"X": "a"}, "sk": {}}),
        (3, {"pk": {"N": "a"}, "sk": {"S": "a"}}),
        (3, {"pk": {"B": "é"}, "sk": {"S": 1}}),
        (3, 7),
    ],
)
def test_a_token_that_was_changed_is_refused(
    wire: WireClient, composite: str, letters: str, at: int, value: object
) -> None:
    text = select(composite, f"pk = '{letters}1'")
    content = json.loads(base64.b64decode(token_of(wire, text)))
    content[at] = value
    token = base64.b64encode(json.dumps(content).encode()).decode()
    refusal = wire.refused("ExecuteStatement", statement(text, NextToken=token))
    assert refusal == ("ValidationException", "Invalid NextToken")


def test_a_write_ignores_a_token(wire: WireClient, simple: str, pk: str) -> None:
    text = f"INSERT INTO \"{simple}\" VALUE {{'pk': '{pk}'}}"
    assert wire("ExecuteStatement", statement(text, NextToken="abc", Limit=1)) == {"Items": []}

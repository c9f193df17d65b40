"""Refused statements and their errors.

``errors.txt`` and ``grammar.txt`` have most of the statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.clients.clients import WireClient, refusal
from tests.support.clients.lanes import LanesClient
from tests.support.tables.songs import songs_table
from tests.support.tables.statement_scripts import (
    Scripted,
    failures,
    grammar,
    heading_of,
    scripted,
)

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

NESTING = "Nesting Levels have exceeded supported limits"
_PLACE_BEHIND_TABLE = re.compile(r"\$\+([0-9]+)")


@pytest.fixture(scope="module")
def songs(wire: WireClient) -> Iterator[str]:
    with songs_table(wire) as name:
        yield name


@pytest.mark.parametrize("cases", scripted("errors"))
def test_a_statement_is_refused_as_its_script_says(
    lanes: LanesClient, simple: str, songs: str, cases: list[Scripted]
) -> None:
    def check(case: Scripted) -> None:
        text = case.statement.replace("$simple", f'"{simple}"').replace("$songs", f'"{songs}"')
        expected = case.part("→") or ""
        if not re.match(r"[A-Za-z]+Exception: ", expected):
            expected = f"ValidationException: {expected}"
        # In the script, positions are relative to the end of the first table's name.
        behind = text.find(f'"{simple}"') + len(simple) + 2
        expected = _PLACE_BEHIND_TABLE.sub(lambda match: str(behind + int(match[1])), expected)
        refusal = lanes.refused("ExecuteStatement", {"Statement": text})
        assert f"{refusal.type}: {refusal.message}" == expected

    assert failures(cases, check) == []


@differs_from_dynamodb_local("shows the statement")
def test_a_statement_that_is_not_well_formed_is_refused_with_the_message_of_the_grammar(
    lanes: LanesClient,
) -> None:
    def heading(text: str) -> str:
        answer = lanes.send("ExecuteStatement", {"Statement": text})
        assert answer.status in {200, 400}, text
        return "accepted" if answer.status == 200 else heading_of(refusal(answer).message or "")

    assert [(text, found) for group, text in grammar() if (found := heading(text)) != group] == []


@differs_from_dynamodb_local("its own words for what the API's model says")
@pytest.mark.parametrize(
    ("members", "value", "rule"),
    [
        ({"Statement": ""}, "'' at 'statement'", "length greater than or equal to 1"),
        (
            {"Statement": "SELECT * FROM table_of_nobody", "Parameters": []},
            "'[]' at 'parameters'",
            "length greater than or equal to 1",
        ),
        (
            {"Statement": "SELECT * FROM table_of_nobody", "Limit": 0},
            "'0' at 'limit'",
            "value greater than or equal to 1",
        ),
        (
            {"Statement": "x" * 8193},
            f"'{'x' * 8193}' at 'statement'",
            "length less than or equal to 8192",
        ),
    ],
)
def test_constraints_of_the_model_are_reported_first(
    wire: WireClient, members: dict[str, object], value: str, rule: str
) -> None:
    message = f"Value {value} failed to satisfy constraint: Member must have {rule}"
    refusal = wire.refused("ExecuteStatement", members)
    assert refusal == ("ValidationException", f"1 validation error detected: {message}")


def test_a_statement_of_8192_characters_is_read(wire: WireClient, simple: str) -> None:
    text = f"SELECT * FROM \"{simple}\" WHERE pk = 'a'"
    assert wire("ExecuteStatement", {"Statement": text.ljust(8192)})["Items"] == []


def values(count: int) -> str:
    """A list of this many values."""
    return "[" + ", ".join(f"'{number}'" for number in range(count)) + "]"


@differs_from_dynamodb_local("takes more than 50 reads")
@pytest.mark.parametrize(
    ("answered", "refused"),
    [
        (f"pk IN {values(50)}", f"pk IN {values(51)}"),
        (f"pk IN {values(50)}", f"pk IN {values(100)}"),
        (f"pk = 'a' AND sk IN {values(50)}", f"pk = 'a' AND sk IN {values(51)}"),
        (f"pk IN {values(25)} AND sk IN ['1', '2']", f"pk IN {values(26)} AND sk IN ['1', '2']"),
        (
            f"pk IN {values(49)} OR pk = 'a' AND sk = '1'",
            f"pk IN {values(49)} OR pk = 'a' AND sk IN ['1', '2']",
        ),
        (f"pk = 'a' AND v IN {values(100)}", f"pk IN {values(60)} AND v IN {values(100)}"),
        # No condition fixes the partition key, so these are Scans.
        (f"sk IN {values(100)} OR pk IN {values(60)}", f"pk IN {values(51)} AND sk > '1'"),
    ],
)
def test_a_select_is_at_most_50_reads(
    wire: WireClient, composite: str, answered: str, refused: str
) -> None:
    text = f'SELECT * FROM "{composite}" WHERE '
    assert wire.send("ExecuteStatement", {"Statement": text + answered}).status == 200
    assert wire.refused("ExecuteStatement", {"Statement": text + refused}) == (
        "ValidationException",
        "Too many decomposed read operations for a given query.",
    )


@pytest.mark.parametrize("name", ["pk", "sk", "v"])
def test_in_has_at_most_100_values(wire: WireClient, composite: str, name: str) -> None:
    text = f"SELECT * FROM \"{composite}\" WHERE pk = 'a' AND {name} IN {values(101)}"
    assert wire.refused("ExecuteStatement", {"Statement": text}) == (
        "ValidationException",
        "The IN operator is provided with too many operands; number of operands: 101",
    )


@differs_from_dynamodb_local("answers with an internal failure")
@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(["v = 1"] * 302),
        "(" * 3000 + "v = 1" + ")" * 3000,
        "NOT " * 1500 + "v = 1",
        "v = 1" + " + 1" * 1500,
        "v" + " = v" * 1500,
        "- " * 1500 + "1 = v",
        "size(" * 1000 + "v" + ")" * 1000 + " = 1",
        "v = " + "[" * 3000 + "]" * 3000,
        "v = " + "<<" * 1500 + ">>" * 1500,
        "v = " + "{'a':" * 1500 + "}" * 1500,
        "v" + "[0]" * 2000 + " = 1",
        "v IN " + "(SELECT pk FROM abc WHERE v IN " * 200 + ")" * 200,
    ],
    ids=[
        *("or", "parentheses", "not", "sum", "equals", "signs", "calls"),
        *("lists", "sets", "maps", "path", "queries"),
    ],
)
def test_the_size_of_expressions_is_limited(wire: WireClient, simple: str, text: str) -> None:
    statement = f'SELECT * FROM "{simple}" WHERE {text}'
    refusal = wire.refused("ExecuteStatement", {"Statement": statement})
    assert refusal.type == "ValidationException"


@differs_from_dynamodb_local("reads the text first")
@pytest.mark.parametrize(
    "text",
    ["SELECT", "nothing", "UPDATE abc SET v = ?", "SELECT * FROM abc WHERE similar(v)"],
)
def test_an_invalid_parameter_is_reported_before_a_fault_of_the_text(
    wire: WireClient, text: str
) -> None:
    one = {"Statement": text, "Parameters": [{"N": "x"}]}
    message = "The parameter cannot be converted to a numeric value: x"
    assert wire.refused("ExecuteStatement", one) == ("ValidationException", message)
    (response,) = wire("BatchExecuteStatement", {"Statements": [one]})["Responses"]
    assert response["Error"] == {"Code": "ValidationError", "Message": message}


@differs_from_dynamodb_local("other words")
@pytest.mark.parametrize(("opening", "closing"), ["[]", "{}"], ids=["lists", "maps"])
def test_documents_nest_32_levels(
    wire: WireClient, simple: str, pk: str, opening: str, closing: str
) -> None:
    def nested(levels: int) -> str:
        begin = opening if opening == "[" else "{'a':"
        return begin * levels + "1" + closing * levels

    insert = f"INSERT INTO \"{simple}\" VALUE {{'pk': '{pk}', 'v': $}}"
    update = f"UPDATE \"{simple}\" SET v = $ WHERE pk = '{pk}'"
    inner = ".a" if opening == "{" else "[0]"
    for text in (insert, update):
        wire("ExecuteStatement", {"Statement": text.replace("$", nested(31))})
        for levels, place in ((32, " under root" + inner * 31), (100, "")):
            faulty = {"Statement": text.replace("$", nested(levels))}
            assert wire.refused("ExecuteStatement", faulty).message == NESTING + place
    # The result of an update may be too deep, although its value is not.
    grow = f"UPDATE \"{simple}\" SET v{inner} = $ WHERE pk = '{pk}'"
    wire("ExecuteStatement", {"Statement": grow.replace("$", nested(30))})
    faulty = {"Statement": grow.replace("$", nested(31))}
    refusal = ("ValidationException", NESTING)
    assert wire.refused("ExecuteStatement", faulty) == refusal
    (response,) = wire("BatchExecuteStatement", {"Statements": [faulty]})["Responses"]
    assert response["Error"] == {"Code": "ValidationError", "Message": NESTING}


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        (
            "INSERT INTO $t VALUE {'pk': 'large', 'v': ?}",
            "x" * 409_600,
            "Item size has exceeded the maximum allowed size",
        ),
        (
            "UPDATE $t SET v = ? WHERE pk = 'small'",
            "x" * 409_600,
            "Item size to update has exceeded the maximum allowed size",
        ),
        pytest.param(
            "INSERT INTO $t VALUE {'pk': ?}",
            "x" * 2049,
            "One or more parameter values were invalid: Size of hashkey has exceeded the maximum "
            "size limit of2048 bytes",
            marks=differs_from_dynamodb_local("other words"),
        ),
    ],
)
def test_items_and_keys_over_their_maximum_sizes_are_refused(
    wire: WireClient, simple: str, text: str, value: str, message: str
) -> None:
    wire("PutItem", {"TableName": simple, "Item": {"pk": {"S": "small"}}})
    request = {"Statement": text.replace("$t", f'"{simple}"'), "Parameters": [{"S": value}]}
    assert wire.refused("ExecuteStatement", request) == ("ValidationException", message)

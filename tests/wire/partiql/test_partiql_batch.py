"""BatchExecuteStatement: either reads of single items or writes, each with its own outcome."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.partiql import plain, statement, typed

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

NO_KEY = (
    "Select statements within BatchExecuteStatement must specify the primary key in the where "
    "clause."
)


def batch(wire: WireClient, *statements: dict[str, Any], **members: Any) -> list[dict[str, Any]]:
    answer = wire("BatchExecuteStatement", {"Statements": list(statements)} | members)
    responses: list[dict[str, Any]] = answer["Responses"]
    assert len(responses) == len(statements)
    return responses


def item_of(response: dict[str, Any]) -> dict[str, Any] | None:
    assert "Error" not in response, response
    return plain(response["Item"]) if "Item" in response else None


def error_of(response: dict[str, Any]) -> tuple[str, str]:
    assert "Item" not in response
    return response["Error"]["Code"], response["Error"]["Message"]


def insert(table: str, pk: str, **attributes: Any) -> dict[str, Any]:
    members = "".join(f", '{name}': ?" for name in attributes)
    text = f"INSERT INTO \"{table}\" VALUE {{'pk': ?{members}}}"
    return statement(text, pk, *attributes.values())


def select(table: str, pk: str, columns: str = "*") -> dict[str, Any]:
    return statement(f'SELECT {columns} FROM "{table}" WHERE pk = ?', pk)


def test_reads_answer_in_the_order_of_their_statements(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    batch(wire, insert(simple, pk, v=1), insert(simple, f"{pk}b", v=2))
    other = typed({"pk": pk, "sk": "a", "v": 3})
    wire("PutItem", {"TableName": composite, "Item": other})
    responses = batch(
        wire,
        select(simple, f"{pk}b", "v"),
        select(simple, "nobody"),
        statement(f"SELECT * FROM \"{composite}\" WHERE sk = 'a' AND pk = ?", pk),
        select(simple, pk) | {"ConsistentRead": True},
    )
    assert [item_of(response) for response in responses] == [
        {"v": 2},
        None,
        {"pk": pk, "sk": "a", "v": 3},
        {"pk": pk, "v": 1},
    ]
    assert [response["TableName"] for response in responses] == [
        *(simple, simple, composite, simple),
    ]


def test_an_update_may_be_written_with_from_first(wire: WireClient, simple: str, pk: str) -> None:
    batch(wire, insert(simple, pk, v=1))
    older = statement(f'FROM "{simple}" WHERE pk = ? AND v = ? SET v = ?', pk, 1, 2)
    missing = statement(f'FROM "{simple}" WHERE pk = ? REMOVE v', f"{pk}b")
    changed, failed = batch(wire, older, missing)
    assert item_of(changed) is None
    assert error_of(failed) == ("ConditionalCheckFailed", "The conditional request failed")
    assert item_of(*batch(wire, select(simple, pk))) == {"pk": pk, "v": 2}
    refusal = wire.refused("BatchExecuteStatement", {"Statements": [older, select(simple, "a")]})
    assert refusal.message == "Read and write requests together in the same batch is not supported."


@differs_from_dynamodb_local("leaves the documents around them")
def test_columns_of_reads_are_named_as_elsewhere(wire: WireClient, simple: str, pk: str) -> None:
    batch(wire, insert(simple, pk, m={"k": [7]}))
    assert item_of(*batch(wire, select(simple, pk, "m.k[0]"))) == {"k[0]": 7}


@differs_from_dynamodb_local("other words; takes an index, and reads the table")
@pytest.mark.parametrize(
    "rest",
    [
        "$composite",
        "$composite WHERE pk = 'a'",
        "$composite WHERE sk = 'a'",
        "$composite WHERE pk = 'a' AND sk > 'a'",
        "$composite WHERE pk = 'a' AND sk IN ['a', 'b']",
        "$composite WHERE pk = 'a' AND sk = 'a' OR pk = 'b' AND sk = 'a'",
        "$composite WHERE pk = 'a' AND sk = 'a' AND v = 1",
        "$indexed.\"by-all\" WHERE pk = 'a' AND sk = 'a'",
    ],
)
def test_a_read_must_name_exactly_the_whole_key(
    wire: WireClient, simple: str, composite: str, indexed: str, rest: str
) -> None:
    tables = {"$composite": f'"{composite}"', "$indexed": f'"{indexed}"'}
    for name, table in tables.items():
        rest = rest.replace(name, table)
    text = f"SELECT * FROM {rest}"
    answered, failed = batch(wire, select(simple, "a"), {"Statement": text})
    assert item_of(answered) is None
    assert error_of(failed) == ("ValidationError", NO_KEY)
    assert "TableName" not in failed


def test_writes_are_executed_independently(wire: WireClient, simple: str, pk: str) -> None:
    batch(wire, *[insert(simple, f"{pk}{number}", v=1) for number in range(4)])
    responses = batch(
        wire,
        insert(simple, f"{pk}0", v=2),
        statement(f'UPDATE "{simple}" SET v = v + 1 WHERE pk = ? RETURNING ALL NEW *', f"{pk}1"),
        statement(f'UPDATE "{simple}" SET v = 2 WHERE pk = ?', f"{pk}nobody"),
        statement(f'DELETE FROM "{simple}" WHERE pk = ? RETURNING ALL OLD *', f"{pk}2"),
        statement(f'DELETE FROM "{simple}" WHERE pk = ? AND v = 9', f"{pk}3"),
        insert(simple, f"{pk}new"),
    )
    assert error_of(responses[0]) == ("DuplicateItem", "Duplicate primary key exists in table")
    assert item_of(responses[1]) == {"pk": f"{pk}1", "v": 2}
    failed = ("ConditionalCheckFailed", "The conditional request failed")
    assert error_of(responses[2]) == failed
    assert item_of(responses[3]) == {"pk": f"{pk}2", "v": 1}
    assert error_of(responses[4]) == failed
    assert item_of(responses[5]) is None
    assert all(response["TableName"] == simple for response in responses)
    left = batch(wire, *[select(simple, pk + end) for end in ("0", "1", "2", "3", "new")])
    assert [item and item.get("v") for item in map(item_of, left)] == [1, 2, None, 1, None]
    assert item_of(left[4]) == {"pk": f"{pk}new"}


def test_a_failed_condition_shows_the_item_on_request(
    wire: WireClient, simple: str, pk: str
) -> None:
    batch(wire, insert(simple, pk, v=1), insert(simple, f"{pk}b", v=1))
    text = f'UPDATE "{simple}" SET v = 2 WHERE pk = ? AND v = 9'
    shown, silent = batch(
        wire,
        statement(text, pk) | {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"},
        statement(text, f"{pk}b"),
    )
    assert plain(shown["Error"]["Item"]) == {"pk": pk, "v": 1}
    assert "Item" not in silent["Error"]


def test_a_fault_of_one_statement_does_not_affect_others(
    wire: WireClient, simple: str, pk: str
) -> None:
    responses = batch(
        wire,
        insert(simple, pk),
        {"Statement": "SELECT"},
        {"Statement": f'UPDATE "{simple}" SET v = 1'},
        {"Statement": f"INSERT INTO \"{simple}\" VALUE {{'pk': 1}}"},
        {"Statement": f"INSERT INTO \"{simple}\" VALUE {{'pk': ?}}"},
        {"Statement": f"EXISTS(SELECT * FROM \"{simple}\" WHERE pk = 'a')"},
    )
    assert item_of(responses[0]) is None
    assert [error_of(response) for response in responses[1:]] == [
        ("ValidationError", "Statement wasn't well formed, can't be processed: Unexpected term"),
        (
            "ValidationError",
            "Where clause does not contain a mandatory equality on all key attributes",
        ),
        (
            "ValidationError",
            "Key attribute's data type should match its data type in table's schema: Key pk",
        ),
        ("ValidationError", "Number of parameters in request and statement don't match."),
        (
            "ValidationError",
            "EXISTS can only be used in ExecuteTransaction write requests.",
        ),
    ]
    assert item_of(*batch(wire, select(simple, pk))) == {"pk": pk}


@differs_from_dynamodb_local("other words")
def test_a_missing_table_is_a_statements_own_fault(wire: WireClient, simple: str) -> None:
    text = "SELECT * FROM nowhere WHERE pk = 'a'"
    found, missing = batch(wire, select(simple, "a"), {"Statement": text})
    assert item_of(found) is None
    assert error_of(missing) == ("ResourceNotFound", "Requested resource not found")


def refused(wire: WireClient, *statements: dict[str, Any]) -> tuple[str, str | None]:
    return wire.refused("BatchExecuteStatement", {"Statements": list(statements)})


def test_a_batch_of_reads_and_writes_is_refused(wire: WireClient, simple: str, pk: str) -> None:
    assert refused(wire, insert(simple, pk), select(simple, "a")) == (
        "ValidationException",
        "Read and write requests together in the same batch is not supported.",
    )
    assert item_of(*batch(wire, select(simple, pk))) is None


@pytest.mark.parametrize(
    "faulty",
    [
        "DELETE FROM some_table",
        "DELETE FROM some_table WHERE pk = 'a' AND v < <<1>>",
        "UPDATE some_table SET v = ? WHERE pk = 'a'",
        "INSERT INTO some_table VALUE [1]",
    ],
)
def test_a_batch_of_reads_and_an_invalid_write_is_refused(
    wire: WireClient, simple: str, faulty: str
) -> None:
    assert refused(wire, select(simple, "a"), {"Statement": faulty}) == (
        "ValidationException",
        "Read and write requests together in the same batch is not supported.",
    )


def test_an_invalid_statement_is_neither_read_nor_write(wire: WireClient, simple: str) -> None:
    found, fault = batch(wire, select(simple, "a"), {"Statement": "nothing"})
    assert item_of(found) is None
    assert error_of(fault)[0] == "ValidationError"


def test_a_statement_may_name_its_key_twice(wire: WireClient, simple: str, pk: str) -> None:
    batch(wire, insert(simple, pk))
    text = f'SELECT * FROM "{simple}" WHERE pk = ? AND pk = ?'
    assert item_of(*batch(wire, statement(text, pk, pk))) == {"pk": pk}
    assert error_of(*batch(wire, statement(text, pk, "b")))[0] == "ValidationError"


@differs_from_dynamodb_local("other words")
def test_an_in_with_one_value_is_a_key_of_a_read(wire: WireClient, composite: str, pk: str) -> None:
    wire("PutItem", {"TableName": composite, "Item": typed({"pk": pk, "sk": "1"})})
    for key in ("pk IN [?] AND sk = '1'", "pk = ? AND sk IN ['1']", "sk IN ('1') AND pk IN [?]"):
        (response,) = batch(wire, statement(f'SELECT * FROM "{composite}" WHERE {key}', pk))
        assert item_of(response) == {"pk": pk, "sk": "1"}


def test_a_repeated_item_is_refused(wire: WireClient, simple: str, pk: str) -> None:
    refusal = ("ValidationException", "Provided list of item keys contains duplicates")
    assert refused(wire, select(simple, pk), select(simple, pk, "v")) == refusal
    assert refused(wire, insert(simple, pk), insert(simple, pk, v=1)) == refusal
    # A statement that repeats an item is refused even if it has another fault.
    faulty = statement(f"UPDATE \"{simple}\" SET pk = 'b' WHERE pk = ?", pk)
    assert refused(wire, insert(simple, pk), faulty) == refusal


def test_an_error_names_the_table_of_a_statement_with_a_key(
    wire: WireClient, simple: str, pk: str
) -> None:
    batch(wire, insert(simple, pk))
    begun, unbegun, keyless = batch(
        wire,
        statement(f"UPDATE \"{simple}\" SET pk = 'b' WHERE pk = ?", pk),
        statement(f'UPDATE "{simple}" SET v = 1 WHERE v = 1'),
        statement(f"INSERT INTO \"{simple}\" VALUE {{'pk': ''}}"),
    )
    assert {error_of(one)[0] for one in (begun, unbegun, keyless)} == {"ValidationError"}
    assert [one.get("TableName") for one in (begun, unbegun, keyless)] == [simple, None, simple]


def test_a_column_may_be_a_path_into_a_key_in_reads_of_one_item(
    wire: WireClient, simple: str, pk: str
) -> None:
    batch(wire, insert(simple, pk))
    (got,) = batch(wire, select(simple, pk, "pk.x"))
    assert got == {"TableName": simple, "Item": {}}


@differs_from_dynamodb_local("writes before it looks")
def test_nothing_is_written_if_an_item_is_repeated(wire: WireClient, simple: str, pk: str) -> None:
    refused(wire, insert(simple, pk), insert(simple, pk, v=1))
    assert item_of(*batch(wire, select(simple, pk))) is None


def test_the_same_key_in_two_tables_is_no_duplicate(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    other = statement(f"SELECT * FROM \"{composite}\" WHERE pk = ? AND sk = 'a'", pk)
    assert [item_of(one) for one in batch(wire, select(simple, pk), other)] == [None, None]


def test_a_batch_has_at_most_25_statements(wire: WireClient, simple: str, pk: str) -> None:
    reads = [select(simple, f"{pk}{number}") for number in range(26)]
    assert len(batch(wire, *reads[:25])) == 25
    assert refused(wire, *reads)[0] == "ValidationException"


@differs_from_dynamodb_local("its own words for what the API's model says")
def test_constraints_of_the_model_are_reported_first(wire: WireClient, simple: str) -> None:
    rule = "failed to satisfy constraint: Member must have length"
    found = "1 validation error detected: Value"
    reads = [select(simple, "a" * number) for number in range(1, 27)]
    shown = [
        f"BatchStatementRequest(statement={read['Statement']}, "
        f"parameters=[AttributeValue(s={read['Parameters'][0]['S']})])"
        for read in reads
    ]
    for statements, message in (
        ([], f"{found} '[]' at 'statements' {rule} greater than or equal to 1"),
        (reads, f"{found} '[{', '.join(shown)}]' at 'statements' {rule} less than or equal to 25"),
        (
            [{"Statement": ""}],
            f"{found} '' at 'statements.1.member.statement' {rule} greater than or equal to 1",
        ),
    ):
        assert refused(wire, *statements) == ("ValidationException", message)


@differs_from_dynamodb_local("tells no consumed capacity")
def test_each_statement_has_its_consumed_capacity(wire: WireClient, indexed: str, pk: str) -> None:
    text = f'INSERT INTO "{indexed}" VALUE ' + "{'pk': ?, 'sk': ?, 'a': 'x', 'v': ?}"
    writes = [statement(text, pk, sort, "x" * 5000) for sort in "ab"]
    answer = wire(
        "BatchExecuteStatement", {"Statements": writes, "ReturnConsumedCapacity": "INDEXES"}
    )
    one = {
        "TableName": indexed,
        "CapacityUnits": 10.0,
        "Table": {"CapacityUnits": 5.0},
        "LocalSecondaryIndexes": {"by-all": {"CapacityUnits": 5.0}},
    }
    assert answer["ConsumedCapacity"] == [one, one]
    key = f'SELECT a FROM "{indexed}" WHERE pk = ? AND sk = ?'
    reads = [
        statement(key, pk, "a"),
        statement(key, pk, "b") | {"ConsistentRead": True},
        statement(key, pk, "nobody"),
    ]
    answer = wire("BatchExecuteStatement", {"Statements": reads, "ReturnConsumedCapacity": "TOTAL"})
    units = [one["CapacityUnits"] for one in answer["ConsumedCapacity"]]
    gets = [
        wire(
            "GetItem",
            {
                "TableName": indexed,
                "Key": typed({"pk": pk, "sk": sort}),
                "ConsistentRead": consistent,
                "ReturnConsumedCapacity": "TOTAL",
            },
        )["ConsumedCapacity"]["CapacityUnits"]
        for sort, consistent in (("a", False), ("b", True), ("nobody", False))
    ]
    assert units == gets == [1.0, 2.0, 0.5]


def test_a_json_type_in_a_parameter_is_reported_before_its_other_faults(
    lanes: LanesClient, simple: str
) -> None:
    read = select(simple, "a") | {"Parameters": [{"L": [{"N": "x"}, {"S": 1}]}]}
    assert lanes.refused("BatchExecuteStatement", {"Statements": [read]}) == (
        "SerializationException",
        "NUMBER_VALUE cannot be converted to String",
    )

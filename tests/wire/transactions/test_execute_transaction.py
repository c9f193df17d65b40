"""ExecuteTransaction: statements that read items at one moment, or write all items or none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.partiql import execute, plain, statement, typed
from tests.support.tables.tables import unique_name
from tests.support.tables.transactions import FAILED, NONE, Reason, cancelled, refused

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

OPERATION = "ExecuteTransaction"
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels "
    "beyond supported limit"
)
INVALID = "One or more parameter values were invalid: "
NO_MATCH = Reason("ValidationError", "The provided key element does not match the schema")
ON_ONE_ITEM = "Transaction request cannot include multiple operations on one item"
NO_CHECK = "EXISTS() must contain a single item read with additional condition"
NO_KEY = (
    "Select statements within ExecuteTransaction must specify the primary key in the where clause."
)


def transaction(wire: WireClient, *statements: dict[str, Any], **members: Any) -> dict[str, Any]:
    return wire(OPERATION, {"TransactStatements": list(statements), **members})


def told(wire: WireClient, *statements: dict[str, Any]) -> str | None:
    """The message of a transaction that is refused as a whole."""
    error, message = refused(wire, *statements, operation=OPERATION)
    assert error == "ValidationException", (error, message)
    return message


def of_statement(place: int, message: str) -> str:
    return f"Validation failed in TransactStatements[{place}]: {message}"


def insert(table: str, pk: str, v: int) -> dict[str, Any]:
    return statement(f"INSERT INTO \"{table}\" VALUE {{'pk': ?, 'v': ?}}", pk, v)


def update(table: str, pk: str, v: int, condition: str = "") -> dict[str, Any]:
    return statement(f'UPDATE "{table}" SET v = ? WHERE pk = ?{condition}', v, pk)


def select(table: str, pk: str, columns: str = "*") -> dict[str, Any]:
    return statement(f'SELECT {columns} FROM "{table}" WHERE pk = ?', pk)


def exists(table: str, pk: str, condition: str) -> dict[str, Any]:
    return statement(f'EXISTS(SELECT * FROM "{table}" WHERE pk = ? AND {condition})', pk)


def values(wire: WireClient, table: str, *pks: str) -> list[Any]:
    """The attribute ``v`` of each item; None for a missing item."""
    found = [execute(wire, f'SELECT * FROM "{table}" WHERE pk = ?', pk) for pk in pks]
    return [items[0].get("v") if items else None for items in found]


def nested(levels: int) -> dict[str, Any]:
    """Lists nested this many levels deep."""
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


# -- reads ------------------------------------------------------------------------------------


def test_reads_answer_in_the_order_of_their_statements(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    wire("PutItem", {"TableName": simple, "Item": typed({"pk": pk, "v": 1})})
    wire("PutItem", {"TableName": composite, "Item": typed({"pk": pk, "sk": "a", "v": 2})})
    answer = transaction(
        wire,
        statement(f'SELECT v FROM "{composite}" WHERE sk = ? AND pk = ?', "a", pk),
        select(simple, f"{pk}none"),
        select(simple, pk),
    )
    found = [plain(each["Item"]) if each else None for each in answer["Responses"]]
    assert found == [{"v": 2}, None, {"pk": pk, "v": 1}]


@differs_from_dynamodb_local("tells no capacity")
def test_reads_and_writes_cost_what_transactions_cost(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    total = {"ReturnConsumedCapacity": "TOTAL"}
    other = statement(f"INSERT INTO \"{composite}\" VALUE {{'pk': ?, 'sk': 'a'}}", pk)
    written = transaction(wire, insert(simple, pk, 1), other, **total)
    units = {"CapacityUnits": 2.0, "WriteCapacityUnits": 2.0}
    assert written["ConsumedCapacity"] == [
        {"TableName": simple, **units},
        {"TableName": composite, **units},
    ]
    read = transaction(wire, select(simple, pk), **total)
    units = {"CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}
    assert read["ConsumedCapacity"] == [{"TableName": simple, **units}]


def test_a_read_must_select_one_item_by_its_key(
    wire: WireClient, simple: str, composite: str, indexed: str, pk: str
) -> None:
    of_key = of_statement(1, NO_KEY)
    for other in (
        statement(f'SELECT * FROM "{composite}" WHERE pk = ?', pk),
        statement(f'SELECT * FROM "{composite}"'),
        statement(f'SELECT * FROM "{simple}" WHERE pk = ? AND v = 1', pk),
        statement(f"SELECT * FROM \"{simple}\" WHERE pk IN ['a', 'b']"),
    ):
        assert told(wire, select(simple, pk), other) == of_key
    of_index = statement(f'SELECT * FROM "{indexed}"."by-all" WHERE pk = ? AND a = ?', pk, "x")
    assert told(wire, of_index) == of_statement(
        0, "Reads on indices are not supported within transactions."
    )
    assert told(wire, select(simple, pk), select(simple, pk)) == ON_ONE_ITEM


def test_an_in_with_one_value_is_a_key_of_a_read(wire: WireClient, composite: str, pk: str) -> None:
    wire("PutItem", {"TableName": composite, "Item": typed({"pk": pk, "sk": "1", "v": 2})})
    text = f"SELECT v FROM \"{composite}\" WHERE pk IN [?] AND sk IN ['1']"
    assert transaction(wire, statement(text, pk))["Responses"] == [{"Item": {"v": {"N": "2"}}}]
    check = f"EXISTS(SELECT * FROM \"{composite}\" WHERE pk IN [?] AND sk = '1' AND v = 2)"
    assert transaction(wire, statement(check, pk)) == {"Responses": []}
    assert told(wire, statement(text.replace("['1']", "['1', '2']"), pk)) == of_statement(0, NO_KEY)


@differs_from_dynamodb_local("other words, and the first fault alone")
def test_each_statement_with_a_faulty_key_has_its_reason(
    wire: WireClient, composite: str, pk: str
) -> None:
    good = statement(f"UPDATE \"{composite}\" SET v = 1 WHERE pk = ? AND sk = '1'", pk)
    for begin in ("UPDATE $ SET v = 1", "DELETE FROM $"):
        faulty = [
            statement(begin.replace("$", f'"{composite}"') + f" WHERE {where}")
            for where in (
                "pk = 'k'",
                "pk IN ['k'] AND sk = '1'",
                "pk = 'k' AND sk = '1' AND pk = 'o'",
                "pk = 'k' AND sk = 1",
                "pk = 'k' AND sk = '1' OR pk = 'o' AND sk = '1'",
            )
        ]
        found = cancelled(wire, *faulty, good, operation=OPERATION)
        assert found == [*[NO_MATCH] * 5, NONE]
    checks = [
        statement(f"EXISTS(SELECT * FROM \"{composite}\" WHERE pk = {key} AND sk = '1' AND v = 1)")
        for key in ("1", "'k' AND pk = 'o'")
    ]
    assert cancelled(wire, good, *checks, operation=OPERATION) == [NONE, NO_MATCH, NO_MATCH]
    inserts = [
        statement(f'INSERT INTO "{composite}" VALUE {{{members}}}')
        for members in ("'pk': 'k'", "'pk': 'k', 'sk': 1")
    ]
    assert cancelled(wire, *inserts, good, operation=OPERATION) == [
        Reason("ValidationError", f"{INVALID}Missing the key sk in the item"),
        Reason("ValidationError", f"{INVALID}Type mismatch for key sk expected: S actual: N"),
        NONE,
    ]
    reads = [f"SELECT * FROM \"{composite}\" WHERE pk = '{pk}' AND sk = {v}" for v in ("'1'", 1)]
    one, other = map(statement, reads)
    assert cancelled(wire, other, one, other, operation=OPERATION) == [NO_MATCH, NONE, NO_MATCH]


@differs_from_dynamodb_local("reports the first of the two")
def test_a_faulty_key_is_reported_before_an_item_that_is_named_twice(
    wire: WireClient, simple: str, pk: str
) -> None:
    number: Any = 1
    reads = [select(simple, pk), select(simple, pk), select(simple, number)]
    assert cancelled(wire, *reads, operation=OPERATION) == [NONE, NONE, NO_MATCH]
    writes = [update(simple, pk, 1), update(simple, pk, 2), update(simple, number, 1)]
    assert cancelled(wire, *writes, operation=OPERATION) == [NONE, NONE, NO_MATCH]


@differs_from_dynamodb_local("says ResourceNotFoundException")
def test_a_missing_table_cancels_the_transaction(wire: WireClient, simple: str, pk: str) -> None:
    missing = Reason("ResourceNotFound", "Requested resource not found")
    nowhere = "no-such-table-anywhere"
    for fault in (
        update(nowhere, pk, 1),
        insert(nowhere, pk, 1),
        statement(f'DELETE FROM "{nowhere}" WHERE pk = ?', pk),
        exists(nowhere, pk, "v = 1"),
    ):
        found = cancelled(wire, update(simple, pk, 1), fault, fault, operation=OPERATION)
        assert found == [NONE, missing, missing]
    assert values(wire, simple, pk) == [None]
    found = cancelled(wire, select(nowhere, pk), select(simple, pk), operation=OPERATION)
    assert found == [missing, NONE]


@differs_from_dynamodb_local("reports the table")
def test_faults_of_the_request_are_reported_before_a_missing_table(
    wire: WireClient, simple: str, composite: str, indexed: str, pk: str
) -> None:
    nowhere = "no-such-table-anywhere"
    returning = statement(f'UPDATE "{simple}" SET v = 1 WHERE pk = ? RETURNING ALL NEW *', pk)
    assert told(wire, update(nowhere, pk, 1), returning) == of_statement(
        1, "RETURNING clause is not supported in ExecuteTransaction."
    )
    unchecked = statement(f"EXISTS(SELECT * FROM \"{simple}\" WHERE pk = 'a')")
    assert told(wire, update(nowhere, pk, 1), unchecked) == of_statement(1, NO_CHECK)
    of_index = statement(f'SELECT * FROM "{indexed}"."by-all" WHERE pk = ? AND a = ?', pk, "x")
    assert told(wire, select(nowhere, pk), select(simple, pk), of_index) == of_statement(
        2, "Reads on indices are not supported within transactions."
    )
    whole = statement(f'SELECT * FROM "{composite}" WHERE pk = ?', pk)
    assert told(wire, select(nowhere, pk), whole) == of_statement(1, NO_KEY)


# -- writes -----------------------------------------------------------------------------------


def test_a_transaction_may_have_writes_of_all_kinds(wire: WireClient, simple: str, pk: str) -> None:
    transaction(wire, insert(simple, f"{pk}a", 1), insert(simple, f"{pk}b", 2))
    answer = transaction(
        wire,
        exists(simple, f"{pk}a", "v = 1"),
        update(simple, f"{pk}b", 5, " AND v = 2"),
        insert(simple, f"{pk}c", 3),
        statement(f'DELETE FROM "{simple}" WHERE pk = ?', f"{pk}d"),
    )
    assert answer == {"Responses": []}
    assert values(wire, simple, f"{pk}a", f"{pk}b", f"{pk}c") == [1, 5, 3]


def test_exists_may_check_that_an_item_is_missing(wire: WireClient, simple: str, pk: str) -> None:
    transaction(wire, insert(simple, pk, 1))
    transaction(wire, exists(simple, pk, "w IS MISSING"), insert(simple, f"{pk}b", 2))
    assert values(wire, simple, f"{pk}b") == [2]


@differs_from_dynamodb_local("ends some messages with a dot, shows no item of EXISTS")
def test_an_impossible_action_cancels_everything(wire: WireClient, simple: str, pk: str) -> None:
    transaction(wire, insert(simple, pk, 1), insert(simple, f"{pk}b", 1))
    asked = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    with_item = Reason(*FAILED[:2], typed({"pk": pk, "v": 1}))
    other = update(simple, f"{pk}b", 9)
    for fault, reason in (
        (exists(simple, pk, "v = 7"), FAILED),
        (exists(simple, pk, "v = 7") | asked, with_item),
        (exists(simple, f"{pk}none", "v IS MISSING"), FAILED),
        (update(simple, f"{pk}none", 1), FAILED),
        (update(simple, pk, 1, " AND v = 7") | asked, with_item),
        (statement(f'DELETE FROM "{simple}" WHERE pk = ? AND v = 7', pk), FAILED),
    ):
        assert cancelled(wire, other, fault, operation=OPERATION) == [NONE, reason]
    assert values(wire, simple, pk, f"{pk}b") == [1, 1]


@differs_from_dynamodb_local("calls it a ValidationError")
def test_an_insert_of_an_item_that_exists_is_a_duplicate(
    wire: WireClient, simple: str, pk: str
) -> None:
    transaction(wire, insert(simple, pk, 1))
    duplicate = Reason("DuplicateItem", "Duplicate primary key exists in table")
    found = cancelled(wire, insert(simple, f"{pk}b", 2), insert(simple, pk, 2), operation=OPERATION)
    assert found == [NONE, duplicate]
    assert values(wire, simple, pk, f"{pk}b") == [1, None]


@differs_from_dynamodb_local("other words for IF NOT EXISTS")
def test_faults_of_statements_are_reported_with_their_place(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    good = update(simple, pk, 1)
    for fault, message in (
        (
            statement(f'UPDATE "{simple}" SET v = 1 WHERE pk = ? RETURNING ALL NEW *', pk),
            "RETURNING clause is not supported in ExecuteTransaction.",
        ),
        (
            statement(f'DELETE FROM "{simple}" WHERE pk = ? RETURNING ALL OLD *', pk),
            "RETURNING clause is not supported in ExecuteTransaction.",
        ),
        (
            statement(f"INSERT INTO \"{simple}\" VALUE {{'pk': ?}} IF NOT EXISTS", pk),
            "IF NOT EXISTS is not supported in ExecuteTransaction.",
        ),
        (
            statement(f'UPDATE "{simple}" SET v = ? WHERE pk = ?', 1),
            "Number of parameters in request and statement don't match.",
        ),
        (statement(f'EXISTS(SELECT * FROM "{simple}" WHERE pk = ?)', pk), NO_CHECK),
        (statement(f'EXISTS(SELECT * FROM "{composite}" WHERE pk = ? AND v = 1)', pk), NO_CHECK),
    ):
        assert told(wire, good, fault) == of_statement(1, message)


@differs_from_dynamodb_local("tells them with their place")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"N": "abc"}, "The parameter cannot be converted to a numeric value: abc"),
        (
            {"N": "1e126"},
            (
                "Number overflow. Attempting to store a number with magnitude larger than "
                "supported range"
            ),
        ),
        (nested(33), TOO_DEEP),
        ({"SS": []}, "One or more parameter values were invalid: An string set  may not be empty"),
    ],
)
def test_faults_of_parameters_are_reported_without_a_place(
    wire: WireClient, simple: str, value: dict[str, Any], message: str
) -> None:
    text = f"INSERT INTO \"{simple}\" VALUE {{'pk': 'a', 'v': ?}}"
    faulty = {"Statement": text, "Parameters": [value]}
    assert told(wire, faulty) == message
    # They come before faults of the texts.
    assert told(wire, {"Statement": "SELECT"}, faulty) == message
    assert told(wire, {"Statement": "SELECT", "Parameters": [value]}) == message


@differs_from_dynamodb_local("shows the statement")
def test_a_malformed_statement_is_reported_separately(wire: WireClient, simple: str) -> None:
    assert told(wire, statement(f'SELEC * FROM "{simple}"')) == (
        "Statement wasn't well formed, can't be processed: Expected data manipulation"
    )


def test_an_update_may_be_written_with_from_first(wire: WireClient, simple: str, pk: str) -> None:
    transaction(wire, insert(simple, pk, 1))
    older = statement(f'FROM "{simple}" WHERE pk = ? AND v = ? SET v = ?', pk, 1, 2)
    transaction(wire, older, insert(simple, f"{pk}b", 1))
    assert values(wire, simple, pk, f"{pk}b") == [2, 1]
    removing = statement(f'FROM "{simple}" WHERE pk = ? REMOVE v', f"{pk}b")
    assert cancelled(wire, older, removing, operation=OPERATION) == [FAILED, NONE]
    assert values(wire, simple, pk, f"{pk}b") == [2, 1]
    returning = statement(f'FROM "{simple}" WHERE pk = ? SET v = 1 RETURNING ALL OLD *', pk)
    assert told(wire, returning) == of_statement(
        0, "RETURNING clause is not supported in ExecuteTransaction."
    )


def test_faults_of_the_whole_request_are_reported(wire: WireClient, simple: str, pk: str) -> None:
    assert told(wire, select(simple, pk), insert(simple, pk, 1)) == (
        "ExecuteTransaction API does not support both read and write operations in the same "
        "request."
    )
    assert told(wire, exists(simple, pk, "v = 1"), select(simple, f"{pk}b")) == (
        "ExecuteTransaction API does not support both read and write operations in the same "
        "request."
    )
    assert told(wire, update(simple, pk, 1), update(simple, pk, 2)) == ON_ONE_ITEM
    negated = f"NOT EXISTS(SELECT * FROM \"{simple}\" WHERE pk = 'a' AND v = 1)"
    assert told(wire, statement(negated)) == "Unsupported operation in transaction."


def test_repeated_statements_with_the_same_token_succeed_without_effect(
    wire: WireClient, simple: str, pk: str
) -> None:
    token = {"ClientRequestToken": unique_name("token")[-36:]}
    wire("PutItem", {"TableName": simple, "Item": typed({"pk": pk, "v": 1})})
    text = f'UPDATE "{simple}" SET v = v + 1 WHERE pk = ?'
    for _ in range(3):
        transaction(wire, statement(text, pk), **token)
    assert values(wire, simple, pk) == [2]
    assert refused(wire, statement(text, f"{pk}b"), operation=OPERATION, **token) == (
        "IdempotentParameterMismatchException",
        (
            "Specified idempotent token was used with different request parameters within the "
            "idempotency window"
        ),
    )

"""TransactWriteItems: all actions are applied or none, and cancellation reasons."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.streams.streams import records_of, streamed_table
from tests.support.tables.partiql import plain, typed
from tests.support.tables.tables import global_index, local_index, table
from tests.support.tables.transactions import (
    FAILED,
    NONE,
    Reason,
    cancelled,
    check,
    delete,
    put,
    refused,
    update,
    with_item,
    write,
)

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

ON_ONE_ITEM = "Transaction request cannot include multiple operations on one item"
BIG = Decimal("9E125")
NO_MATCH = "The provided key element does not match the schema"
INDEXES: Any = {
    "indexes": (local_index("by-l", "pk", "l"),),
    "GlobalSecondaryIndexes": [global_index("by-g", "g")],
}
INVALID = "One or more parameter values were invalid: "


def item(wire: WireClient, table: str, **key: Any) -> dict[str, Any] | None:
    answer = wire("GetItem", {"TableName": table, "Key": typed(key), "ConsistentRead": True})
    return plain(answer["Item"]) if "Item" in answer else None


# -- committed transactions -------------------------------------------------------------------


def test_puts_to_two_tables_are_visible_when_the_transaction_is_answered(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    assert write(wire, put(simple, pk=pk, v=1), put(composite, pk=pk, sk="a", v=2)) == {}
    assert item(wire, simple, pk=pk) == {"pk": pk, "v": 1}
    assert item(wire, composite, pk=pk, sk="a") == {"pk": pk, "sk": "a", "v": 2}


def test_each_kind_of_action_has_its_effect(wire: WireClient, composite: str, pk: str) -> None:
    write(wire, *(put(composite, pk=f"{pk}-{n}", sk="a", v=n) for n in range(4)))
    write(
        wire,
        put(composite, pk=f"{pk}-0", sk="a", w=7),
        update(composite, "ADD v :one SET x = :x", {"one": 1, "x": "y"}, pk=f"{pk}-1", sk="a"),
        delete(composite, pk=f"{pk}-2", sk="a"),
        check(composite, "v = :three", {"three": 3}, pk=f"{pk}-3", sk="a"),
        update(composite, "SET v = :v", {"v": 1}, pk=f"{pk}-4", sk="a"),
        delete(composite, pk=f"{pk}-5", sk="a"),
    )
    found = [item(wire, composite, pk=f"{pk}-{n}", sk="a") for n in range(6)]
    assert found == [
        {"pk": f"{pk}-0", "sk": "a", "w": 7},
        {"pk": f"{pk}-1", "sk": "a", "v": 2, "x": "y"},
        None,
        {"pk": f"{pk}-3", "sk": "a", "v": 3},
        {"pk": f"{pk}-4", "sk": "a", "v": 1},
        None,
    ]


def test_a_hundred_items_are_written_at_once(wire: WireClient, composite: str, pk: str) -> None:
    write(wire, *(put(composite, pk=f"{pk}-{n % 7}", sk=f"{n:03}", v=n) for n in range(100)))
    for group in range(7):
        request = {
            "TableName": composite,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": f"{pk}-{group}"}},
        }
        found = [plain(one)["v"] for one in wire("Query", request)["Items"]]
        assert found == list(range(group, 100, 7))


def test_local_and_global_indexes_get_the_changes_of_a_transaction(
    wire: WireClient, pk: str
) -> None:
    with table(wire, "pk:S", "sk:S", "l:N", "g:S", **INDEXES) as name:
        write(
            wire,
            put(name, pk=f"{pk}-0", sk="a", l=1, g="x"),
            put(name, pk=f"{pk}-1", sk="a", l=2, g="x"),
            put(name, pk=f"{pk}-2", sk="a", l=3, g="y"),
        )
        write(
            wire,
            update(name, "SET l = :l, g = :g", {"l": 9, "g": "y"}, pk=f"{pk}-0", sk="a"),
            delete(name, pk=f"{pk}-1", sk="a"),
        )
        request = {
            "TableName": name,
            "IndexName": "by-l",
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": f"{pk}-0"}},
            "ConsistentRead": True,
        }
        assert [plain(one)["l"] for one in wire("Query", request)["Items"]] == [9]
        scan = {"TableName": name, "IndexName": "by-g"}
        found: list[Any] = []
        for _ in range(10_000):
            found = sorted((one["pk"]["S"], one["g"]["S"]) for one in wire("Scan", scan)["Items"])
            if len(found) == 2 and found[0][1] == "y":
                break
        assert found == [(f"{pk}-0", "y"), (f"{pk}-2", "y")]


@differs_from_dynamodb_local("knows no ARNs")
def test_a_table_may_be_named_by_its_arn(wire: WireClient, simple: str, pk: str) -> None:
    arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{simple}"
    write(wire, put(arn, pk=pk))
    assert item(wire, simple, pk=pk) == {"pk": pk}
    assert refused(wire, put(arn, pk=pk), delete(simple, pk=pk)) == (
        "ValidationException",
        ON_ONE_ITEM,
    )


# -- canceled because of items ----------------------------------------------------------------


@differs_from_dynamodb_local("ends the message of a failed condition with a dot")
def test_a_failed_condition_cancels_everything(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    write(wire, put(simple, pk=pk, v=1))
    reasons = cancelled(
        wire,
        put(composite, pk=pk, sk="a"),
        check(simple, "v = :two", {"two": 2}, pk=pk),
        put(simple, pk=f"{pk}b"),
    )
    assert reasons == [NONE, FAILED, NONE]
    assert item(wire, composite, pk=pk, sk="a") is None
    assert item(wire, simple, pk=f"{pk}b") is None


@differs_from_dynamodb_local("ends the message of a failed condition with a dot")
def test_every_failed_condition_is_reported_with_its_item_on_request(
    wire: WireClient, simple: str, pk: str
) -> None:
    write(wire, put(simple, pk=pk, v=1), put(simple, pk=f"{pk}b", v=2))
    reasons = cancelled(
        wire,
        with_item(check(simple, "v = :v", {"v": 7}, pk=pk)),
        check(simple, "v = :v", {"v": 7}, pk=f"{pk}b"),
        with_item(put(simple, "attribute_exists(pk)", pk=f"{pk}none")),
        with_item(put(simple, "attribute_not_exists(pk)", pk=f"{pk}new")),
    )
    with_old = Reason(*FAILED[:2], typed({"pk": pk, "v": 1}))
    assert reasons == [with_old, FAILED, FAILED, NONE]
    deleted = with_item({"Delete": check(simple, "v = :v", {"v": 7}, pk=pk)["ConditionCheck"]})
    assert cancelled(wire, deleted) == [with_old]
    updated = update(simple, "SET v = :v", {"v": 7}, pk=pk)["Update"]
    on_condition = {"Update": updated | {"ConditionExpression": "v = :v"}}
    assert cancelled(wire, with_item(on_condition)) == [with_old]


@differs_from_dynamodb_local("answers with a ValidationException")
@pytest.mark.parametrize(
    "fault",
    [
        (
            "SET v = s + :one",
            {"one": 1},
            "An operand in the update expression has an incorrect data type",
        ),
        (
            "SET v = absent",
            {},
            "The provided expression refers to an attribute that does not exist in the item",
        ),
        (
            "SET absent.a.b = :one",
            {"one": 1},
            "The document path provided in the update expression is invalid for update",
        ),
        (
            "SET s = :s",
            {"s": "x" * 390_000},
            "Item size to update has exceeded the maximum allowed size",
        ),
        (
            "ADD big :big",
            {"big": BIG},
            (
                "Number overflow. Attempting to store a number with magnitude larger than "
                "supported range"
            ),
        ),
    ],
)
def test_an_impossible_update_cancels_with_a_validation_error(
    wire: WireClient, simple: str, pk: str, fault: tuple[str, dict[str, Any], str]
) -> None:
    expression, values, message = fault
    write(wire, put(simple, pk=pk, s="text", t="x" * 20_000, big=BIG))
    reasons = cancelled(wire, put(simple, pk=f"{pk}b"), update(simple, expression, values, pk=pk))
    assert reasons == [NONE, Reason("ValidationError", message)]
    assert item(wire, simple, pk=f"{pk}b") is None


# -- canceled because of tables -----------------------------------------------------------------


@differs_from_dynamodb_local("tells less, and of all such actions")
def test_the_first_action_that_does_not_match_its_table_is_the_reason(
    wire: WireClient, simple: str, indexed: str, pk: str
) -> None:
    mismatch = Reason("ValidationError", f"{INVALID}Type mismatch for key pk expected: S actual: N")
    assert cancelled(wire, put(simple, pk=pk), put(simple, pk=1), put(simple, pk=2)) == [
        NONE,
        mismatch,
        NONE,
    ]
    missing = Reason("ValidationError", f"{INVALID}Missing the key pk in the item")
    assert cancelled(wire, put(simple, v=1)) == [missing]
    no_match = Reason("ValidationError", NO_MATCH)
    for action in (
        delete(simple, pk=1),
        delete(simple, other=pk),
        check(simple, "attribute_exists(pk)", {}, pk=1),
        update(simple, "SET v = :v", {"v": 1}, pk=pk, sk="a"),
    ):
        assert cancelled(wire, action) == [no_match]
    of_key = f"{INVALID}Cannot update attribute pk. This attribute is part of the key"
    assert cancelled(wire, update(simple, "SET pk = :v", {"v": "x"}, pk=pk)) == [
        Reason("ValidationError", of_key)
    ]
    of_index = f"{INVALID}Type mismatch for Index Key k Expected: N Actual: S IndexName: by-keys"
    assert cancelled(wire, put(indexed, pk=pk, sk="a", k="x")) == [
        Reason("ValidationError", of_index)
    ]
    assert cancelled(wire, update(indexed, "SET k = :v", {"v": "x"}, pk=pk, sk="a")) == [
        Reason("ValidationError", of_index)
    ]


@pytest.mark.parametrize("kind", ["put", "delete", "update", "check"])
def test_an_empty_key_is_a_fault_of_the_request(
    wire: WireClient, simple: str, pk: str, kind: str
) -> None:
    action = {
        "put": put(simple, pk="", v=1),
        "delete": delete(simple, pk=""),
        "update": update(simple, "SET v = :v", {"v": 1}, pk=""),
        "check": check(simple, "attribute_not_exists(pk)", {}, pk=""),
    }[kind]
    empty = (
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk"
    )
    assert refused(wire, put(simple, pk=pk), action) == ("ValidationException", empty)
    assert item(wire, simple, pk=pk) is None


def test_an_empty_key_of_an_index_is_a_fault_of_the_request(wire: WireClient, pk: str) -> None:
    with table(wire, "pk:S", "sk:S", "l:S", "g:S", **INDEXES) as name:
        before = put(name, pk=pk, sk="before")
        error, message = refused(wire, before, put(name, pk=pk, sk="a", g=""))
        assert error == "ValidationException"
        assert message == (
            "One or more parameter values are not valid. A value specified for a secondary index "
            "key is not supported. The AttributeValue for a key attribute cannot contain an empty "
            "string value. IndexName: by-g, IndexKey: g"
        )
        error, message = refused(wire, before, update(name, "SET g = :g", {"g": ""}, pk=pk, sk="a"))
        assert error == "ValidationException"
        assert message == (
            "One or more parameter values are not valid. The update expression attempted to "
            "update a secondary index key to a value that is not supported. The AttributeValue "
            "for a key attribute cannot contain an empty string value."
        )
        assert item(wire, name, pk=pk, sk="before") is None


@pytest.mark.parametrize(
    "other",
    [
        *("put", "delete", "update"),
        pytest.param("check", marks=differs_from_dynamodb_local("tells the check first")),
    ],
)
def test_no_two_actions_may_be_on_one_item(
    wire: WireClient, simple: str, pk: str, other: str
) -> None:
    second = {
        "put": put(simple, pk=pk, v=2),
        "delete": delete(simple, pk=pk),
        "update": update(simple, "SET v = :v", {"v": 1}, pk=pk),
        "check": check(simple, "attribute_not_exists(pk)", {}, pk=pk),
    }[other]
    assert refused(wire, put(simple, pk=pk), second) == ("ValidationException", ON_ONE_ITEM)
    assert item(wire, simple, pk=pk) is None


def test_a_table_that_is_missing_refuses_everything(wire: WireClient, simple: str, pk: str) -> None:
    error, _ = refused(wire, put(simple, pk=pk), put("no-such-table-anywhere", pk=pk))
    assert error == "ResourceNotFoundException"
    assert item(wire, simple, pk=pk) is None


# -- invalid requests ---------------------------------------------------------------------------


@differs_from_dynamodb_local("words of its own, or accepted")
def test_constraints_of_members_are_reported_like_any_others(
    wire: WireClient, simple: str, pk: str
) -> None:
    def told(request: dict[str, Any]) -> str | None:
        refusal = wire.refused("TransactWriteItems", request)
        assert refusal.type == "ValidationException"
        return refusal.message

    one = "1 validation error detected: Value"
    failed = "failed to satisfy constraint: Member must"
    assert told({}) == f"{one} null at 'transactItems' {failed} not be null"
    assert told({"TransactItems": []}) == (
        f"{one} '[]' at 'transactItems' {failed} have length greater than or equal to 1"
    )
    many = [put(simple, pk=f"{pk}-{n}") for n in range(101)]
    shown = [
        f"TransactWriteItem(put=Put(item={{pk=AttributeValue(s={pk}-{n})}}, tableName={simple}))"
        for n in range(101)
    ]
    assert told({"TransactItems": many}) == (
        f"{one} '[{', '.join(shown)}]' at 'transactItems' {failed} have length less than or equal "
        "to 100"
    )
    assert told({"TransactItems": [{"Put": {"Item": {}}}]}) == (
        f"{one} null at 'transactItems.1.member.put.tableName' {failed} not be null"
    )
    assert told({"TransactItems": [{"Update": {"TableName": simple, "Key": {}}}]}) == (
        f"{one} null at 'transactItems.1.member.update.updateExpression' {failed} not be null"
    )
    assert told({"TransactItems": [{"ConditionCheck": {"TableName": simple, "Key": {}}}]}) == (
        f"{one} null at 'transactItems.1.member.conditionCheck.conditionExpression' {failed} "
        "not be null"
    )
    token = {"TransactItems": [put(simple, pk=pk)], "ClientRequestToken": "x" * 37}
    assert told(token) == (
        f"{one} '{'x' * 37}' at 'clientRequestToken' {failed} have length less than or equal to 36"
    )


def test_an_action_is_exactly_one_of_the_four(wire: WireClient, simple: str, pk: str) -> None:
    assert refused(wire, {}) == (
        "ValidationException",
        "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
    )
    assert refused(wire, put(simple, pk=pk) | delete(simple, pk=pk)) == (
        "ValidationException",
        "TransactItems can only contain one of Check, Put, Update or Delete",
    )


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"ConditionExpression": "bad bad"},
            'Invalid ConditionExpression: Syntax error; token: "bad", near: "bad bad"',
        ),
        (
            {
                "ConditionExpression": "v = :v",
                "ExpressionAttributeValues": {":v": {"N": "1"}, ":w": {"N": "1"}},
            },
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}",
        ),
        (
            {"ExpressionAttributeNames": {"#v": "v"}},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            {"ConditionExpression": "attribute_exists(pk.a)"},
            (
                "Key attributes must be scalars; list random access '[]' and map lookup '.' are "
                "not allowed: Key: pk"
            ),
        ),
    ],
)
def test_a_fault_in_an_expression_refuses_the_whole_request(
    wire: WireClient, simple: str, pk: str, members: dict[str, Any], message: str
) -> None:
    action = {"Put": put(simple, pk=f"{pk}b")["Put"] | members}
    assert refused(wire, put(simple, pk=pk), action) == ("ValidationException", message)
    assert item(wire, simple, pk=pk) is None


def test_values_and_sizes_of_items_are_checked_before_conditions(
    wire: WireClient, simple: str, pk: str
) -> None:
    empty = {"Put": {"TableName": simple, "Item": {"pk": {"S": pk}, "v": {}}}}
    assert refused(wire, empty) == (
        "ValidationException",
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    )
    assert refused(wire, put(simple, pk=pk, v="x" * 410_000)) == (
        "ValidationException",
        "Item size has exceeded the maximum allowed size",
    )


def test_more_than_4_mb_are_refused(wire: WireClient, simple: str, pk: str) -> None:
    actions = [put(simple, pk=f"{pk}-{n:02}", v="x" * 390_000) for n in range(12)]
    size_bytes = 11 * (390_000 + len(pk) + 3 + 2 + 1)
    assert refused(wire, *actions) == (
        "ValidationException",
        f"Transaction payload size cannot exceed 4MB. Payload Size: {size_bytes}",
    )
    write(wire, *actions[:10])


# -- capacity -----------------------------------------------------------------------------------


@differs_from_dynamodb_local("other units, in no order")
def test_a_transaction_costs_double_units_of_tables_and_single_units_of_indexes(
    wire: WireClient, simple: str, pk: str
) -> None:
    with table(wire, "pk:S", "sk:S", "l:N", "g:S", **INDEXES) as name:
        actions = [
            put(name, pk=pk, sk="a", l=1, g="x"),
            put(simple, pk=pk, v="x" * 1_500),
            put(name, pk=pk, sk="b", l=2),
        ]
        answer = write(wire, *actions, ReturnConsumedCapacity="INDEXES")
        assert answer["ConsumedCapacity"] == [
            {
                "TableName": name,
                **units(7.0),
                "Table": units(4.0),
                "LocalSecondaryIndexes": {"by-l": units(2.0)},
                "GlobalSecondaryIndexes": {"by-g": units(1.0)},
            },
            {"TableName": simple, **units(4.0), "Table": units(4.0)},
        ]
        answer = write(
            wire,
            check(simple, "attribute_exists(pk)", {}, pk=pk),
            delete(simple, pk=f"{pk}none"),
            ReturnConsumedCapacity="TOTAL",
        )
        assert answer["ConsumedCapacity"] == [{"TableName": simple, **units(6.0)}]
    assert "ConsumedCapacity" not in write(wire, put(simple, pk=pk), ReturnConsumedCapacity="NONE")


def units(number: float) -> dict[str, float]:
    return {"CapacityUnits": number, "WriteCapacityUnits": number}


@differs_from_dynamodb_local("gives no metrics for transactions")
def test_item_collections_are_reported_for_tables_with_local_indexes(
    wire: WireClient, simple: str, indexed: str, pk: str
) -> None:
    answer = write(
        wire,
        put(simple, pk=pk),
        put(indexed, pk=pk, sk="a"),
        put(indexed, pk=pk, sk="b"),
        put(indexed, pk=f"{pk}b", sk="a"),
        check(indexed, "attribute_not_exists(pk)", {}, pk=f"{pk}c", sk="a"),
        ReturnItemCollectionMetrics="SIZE",
    )
    told = answer["ItemCollectionMetrics"]
    assert set(told) == {indexed}
    assert told[indexed] == [
        {"ItemCollectionKey": {"pk": {"S": key}}, "SizeEstimateRangeGB": [0.0, 1.0]}
        for key in (pk, f"{pk}b")
    ]


# -- client tokens --------------------------------------------------------------------------------


def test_a_repeated_request_with_the_same_token_succeeds_without_effect(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    actions = [
        update(simple, "ADD v :one", {"one": 1}, pk=pk),
        update(composite, "ADD v :one", {"one": 1}, pk=pk, sk="a"),
    ]
    for _ in range(3):
        write(wire, *actions, ClientRequestToken=pk[-36:])
    assert item(wire, simple, pk=pk) == {"pk": pk, "v": 1}
    alone = update(simple, "ADD v :one", {"one": 1}, pk=pk)
    for _ in range(3):
        write(wire, alone, ClientRequestToken=f"alone-{pk}"[-36:])
    assert item(wire, simple, pk=pk) == {"pk": pk, "v": 2}


@differs_from_dynamodb_local("tells only CapacityUnits")
def test_a_repeated_request_costs_the_reading_of_its_items(
    wire: WireClient, simple: str, pk: str
) -> None:
    members = {"ClientRequestToken": pk[-36:], "ReturnConsumedCapacity": "TOTAL"}
    first = write(wire, put(simple, pk=pk, v="x" * 5_000), **members)
    assert first["ConsumedCapacity"] == [{"TableName": simple, **units(10.0)}]
    again = write(wire, put(simple, pk=pk, v="x" * 5_000), **members)
    read = {"CapacityUnits": 4.0, "ReadCapacityUnits": 4.0}
    assert again["ConsumedCapacity"] == [{"TableName": simple, **read}]


@differs_from_dynamodb_local("says nothing")
def test_a_token_with_another_request_is_a_mismatch(wire: WireClient, simple: str, pk: str) -> None:
    token = {"ClientRequestToken": pk[-36:]}
    write(wire, put(simple, pk=pk, v=1), **token)
    mismatch = (
        "IdempotentParameterMismatchException",
        (
            "Specified idempotent token was used with different request parameters within the "
            "idempotency window"
        ),
    )
    assert refused(wire, put(simple, pk=pk, v=2), **token) == mismatch
    assert refused(wire, put(simple, pk=2), **token) == mismatch
    assert item(wire, simple, pk=pk) == {"pk": pk, "v": 1}


@differs_from_dynamodb_local("ends the message of a failed condition with a dot")
def test_the_token_of_a_canceled_transaction_can_be_used_again(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    token = {"ClientRequestToken": pk[-36:]}
    failing = check(simple, "attribute_exists(pk)", {}, pk=pk)
    assert cancelled(wire, failing, put(composite, pk=pk, sk="a"), **token) == [FAILED, NONE]
    write(wire, put(simple, pk=pk), **token)
    assert item(wire, simple, pk=pk) == {"pk": pk}


def test_a_stream_shows_the_changes_of_a_transaction(
    wire: WireClient, streams_wire: WireClient, pk: str
) -> None:
    with streamed_table(wire, "pk:S") as (name, arn):
        write(wire, *(put(name, pk=f"{pk}-{number}", v=number) for number in range(5)))
        write(
            wire,
            update(name, "SET v = :v", {"v": 9}, pk=f"{pk}-0"),
            delete(name, pk=f"{pk}-1"),
            check(name, "v = :v", {"v": 2}, pk=f"{pk}-2"),
            put(name, pk=f"{pk}-3", v=3),
        )
        write(wire, put(name, pk=f"{pk}-4", v=7))
        records: list[dict[str, Any]] = []
        for _ in range(1_000):
            records = records_of(streams_wire, arn)
            if len(records) >= 8:
                break
        told = sorted((each["eventName"], each["dynamodb"]["Keys"]["pk"]["S"]) for each in records)
        assert told == [
            *(("INSERT", f"{pk}-{number}") for number in range(5)),
            ("MODIFY", f"{pk}-0"),
            ("MODIFY", f"{pk}-4"),
            ("REMOVE", f"{pk}-1"),
        ]
        assert not any("userIdentity" in each for each in records)

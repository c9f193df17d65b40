"""UpdateTable adds, changes and deletes global secondary indexes, phase by phase."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.clients import refusal as refusal_of
from tests.support.clients.lanes import LanesClient
from tests.support.servers.server import running_server
from tests.support.tables.tables import (
    definition,
    global_index,
    key_schema,
    table,
    wait_until_active,
    wait_until_indexes_active,
)

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local
ours_alone = pytest.mark.ours_alone

INVALID = "One or more parameter values were invalid: "
ONLY_ONE = (
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per "
    "table"
)
IN_USE = "Attempt to change a resource which is still in use: Index is being"
CHANGING_INDEXES = (
    "ResourceInUseException",
    (
        "Attempt to change a resource which is still in use: Cannot delete table while indexes are "
        "being created, updated, or deleted."
    ),
)
# With this option an index stays in a phase until the tests end.
FOR_EVER = "3600"
OK = 200


def units(read: int, write: int = 1) -> dict[str, Any]:
    return {"ProvisionedThroughput": {"ReadCapacityUnits": read, "WriteCapacityUnits": write}}


PROVISIONED = {"BillingMode": "PROVISIONED", **units(5, 5)}


def create(name: str, *keys: str, **members: Any) -> dict[str, Any]:
    """The members of an UpdateTable that adds an index on string attributes."""
    index = global_index(name, *keys, **members)
    attributes = [element["AttributeName"] for element in index["KeySchema"]]
    return {
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": "S"} for attribute in attributes
        ],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }


def changes(*updates: dict[str, Any]) -> dict[str, Any]:
    return {"GlobalSecondaryIndexUpdates": list(updates)}


def change(name: str, read: int) -> dict[str, Any]:
    return {"Update": {"IndexName": name, **units(read)}}


def delete(name: str) -> dict[str, Any]:
    return {"Delete": {"IndexName": name}}


def update(wire: WireClient, name: str, **members: Any) -> dict[str, Any]:
    answer = wire("UpdateTable", {"TableName": name, **members})
    description: dict[str, Any] = answer["TableDescription"]
    return description


def indexes(description: dict[str, Any]) -> dict[str, dict[str, Any]]:
    listed = description.get("GlobalSecondaryIndexes", [])
    return {index["IndexName"]: index for index in listed}


def state(wire: WireClient, name: str, index: str) -> tuple[str, bool | None]:
    shown = indexes(wire("DescribeTable", {"TableName": name})["Table"])[index]
    return shown["IndexStatus"], shown.get("Backfilling")


def refused(wire: WireClient, name: str, **members: Any) -> tuple[str, str | None]:
    return wire.refused("UpdateTable", {"TableName": name, **members})


@contextmanager
def a_table(wire: WireClient, *names: str, **members: Any) -> Iterator[str]:
    """A table with the key ``pk``, a string, and an index for each name on ``of-<name>``."""
    given = members.get("BillingMode") == "PROVISIONED"
    keys = [f"of-{name}" for name in names]
    made = [
        global_index(name, key, **(units(1) if given else {}))
        for name, key in zip(names, keys, strict=True)
    ]
    if made:
        members["GlobalSecondaryIndexes"] = made
    members["KeySchema"] = key_schema("pk")
    with table(wire, "pk:S", *[f"{key}:S" for key in keys], **members) as name:
        wait_until_indexes_active(wire, name)
        yield name


def put(wire: WireClient, name: str, pk: str, **attributes: Any) -> None:
    wire("PutItem", {"TableName": name, "Item": {"pk": {"S": pk}, **attributes}})


def keys_in(wire: WireClient, name: str, index: str) -> list[str]:
    items = wire("Scan", {"TableName": name, "IndexName": index})["Items"]
    return sorted(item["pk"]["S"] for item in items)


# -- the life of an index ---------------------------------------------------------------------


def test_an_added_index_has_entries_for_existing_items(wire: WireClient):
    with a_table(wire) as name:
        for number in range(30):
            put(wire, name, f"{number:02}", a={"S": "x"})
        put(wire, name, "without")
        added = indexes(update(wire, name, **create("by-a", "a")))["by-a"]
        assert (added["IndexStatus"], added["Backfilling"]) == ("CREATING", False)
        described = wait_until_indexes_active(wire, name)
        assert "Backfilling" not in indexes(described)["by-a"]
        names = [each["AttributeName"] for each in described["AttributeDefinitions"]]
        assert sorted(names) == ["a", "pk"]
        assert keys_in(wire, name, "by-a") == [f"{number:02}" for number in range(30)]
        put(wire, name, "later", a={"S": "x"})
        while "later" not in keys_in(wire, name, "by-a"):
            pass


@differs_from_dynamodb_local("its index takes all of them")
def test_items_that_violate_the_index_key_have_no_entry_and_may_be_updated(wire: WireClient):
    with a_table(wire) as name:
        put(wire, name, "good", a={"S": "x"})
        put(wire, name, "wrong type", a={"N": "1"})
        put(wire, name, "empty", a={"S": ""})
        put(wire, name, "too long", a={"S": "x" * 2049})
        update(wire, name, **create("by-a", "a"))
        wait_until_indexes_active(wire, name)
        assert keys_in(wire, name, "by-a") == ["good"]
        assert setting(wire, name, "wrong type", "z", {"S": "v"}) is None
        assert setting(wire, name, "wrong type", "a", {"N": "2"}) == "ValidationException"
        assert setting(wire, name, "wrong type", "a", {"S": "x"}) is None
        while keys_in(wire, name, "by-a") != ["good", "wrong type"]:
            pass


def setting(wire: WireClient, name: str, pk: str, attribute: str, value: Any) -> str | None:
    """Set an attribute; return the type of the error if the update is refused."""
    request = {
        "TableName": name,
        "Key": {"pk": {"S": pk}},
        "UpdateExpression": f"SET {attribute} = :v",
        "ExpressionAttributeValues": {":v": value},
    }
    answer = wire.send("UpdateItem", request)
    return None if answer.status == OK else refusal_of(answer).type


def test_a_deleted_index_is_removed_with_its_attribute_definitions(wire: WireClient):
    with a_table(wire, "one", "two") as name:
        put(wire, name, "1", **{"of-one": {"S": "x"}})
        deleting = update(wire, name, **changes(delete("one")))
        assert indexes(deleting)["one"]["IndexStatus"] == "DELETING"
        described = wait_until_indexes_active(wire, name)
        assert indexes(described).keys() == {"two"}
        names = [each["AttributeName"] for each in described["AttributeDefinitions"]]
        assert sorted(names) == ["of-two", "pk"]
        request = {"TableName": name, "IndexName": "one"}
        assert wire.refused("Scan", request) == (
            "ValidationException",
            "The table does not have the specified index: one",
        )


@differs_from_dynamodb_local("it answers 500 then")
def test_a_recreated_index_has_no_entries_of_the_old_one(wire: WireClient):
    with a_table(wire, "one") as name:
        put(wire, name, "1", **{"of-one": {"S": "x"}})
        while keys_in(wire, name, "one") != ["1"]:
            pass
        update(wire, name, **changes(delete("one")))
        wait_until_indexes_active(wire, name)
        # The new index key may have another type, because its definition was deleted with the
        # index.
        put(wire, name, "2", **{"of-one": {"N": "1"}})
        again = create("one", "of-one")
        again["AttributeDefinitions"][0]["AttributeType"] = "N"
        update(wire, name, **again)
        wait_until_indexes_active(wire, name)
        assert keys_in(wire, name, "one") == ["2"]


def test_attribute_definitions_of_future_indexes_are_accepted(wire: WireClient):
    with a_table(wire) as name:
        request = create("by-a", "a")
        request["AttributeDefinitions"] += [
            {"AttributeName": attribute, "AttributeType": "S"} for attribute in ("pk", "b")
        ]
        update(wire, name, **request)
        assert indexes(wait_until_indexes_active(wire, name)).keys() == {"by-a"}


def test_throughput_of_table_and_indexes_changes_in_one_call(wire: WireClient):
    with a_table(wire, "one", "two", **PROVISIONED) as name:
        update(wire, name, **units(7, 7), **changes(change("one", 2), change("two", 3)))
        described = wait_until_indexes_active(wire, name)
        assert described["ProvisionedThroughput"]["ReadCapacityUnits"] == 7
        for index, read in (("one", 2), ("two", 3)):
            throughput = indexes(described)[index]["ProvisionedThroughput"]
            assert throughput["ReadCapacityUnits"] == read


@differs_from_dynamodb_local("it changes them at once")
def test_an_index_that_is_updating_has_its_old_units_and_an_active_table(wire: WireClient):
    with a_table(wire, "one", **PROVISIONED) as name:
        answer = update(wire, name, **changes(change("one", 2)))
        assert answer["TableStatus"] == "ACTIVE"
        changed = indexes(answer)["one"]
        assert changed["IndexStatus"] == "UPDATING"
        throughput = changed["ProvisionedThroughput"]
        assert throughput.pop("LastIncreaseDateTime") > 0
        assert throughput == {
            "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": 1,
            "WriteCapacityUnits": 1,
        }
        settled = indexes(wait_until_indexes_active(wire, name))["one"]["ProvisionedThroughput"]
        assert settled["ReadCapacityUnits"] == 2
        assert settled["LastIncreaseDateTime"] > 0


def test_a_new_index_does_not_redefine_an_attribute(wire: WireClient):
    with a_table(wire) as name:
        by_pk = create("by-pk", "pk")
        by_pk["AttributeDefinitions"][0]["AttributeType"] = "N"
        assert refused(wire, name, **by_pk) == (
            "ValidationException",
            (
                f"{INVALID}Attributes cannot be redefined. Please check that your attribute has "
                "the same type as previously defined. Existing schema: Schema:[SchemaElement: "
                "key{pk:S:HASH}] New schema: Schema:[SchemaElement: key{pk:N:HASH}]"
            ),
        )


@differs_from_dynamodb_local("it refuses the request")
def test_a_definition_outside_of_the_new_key_is_ignored(wire: WireClient):
    with a_table(wire) as name:
        request = create("by-a", "a")
        request["AttributeDefinitions"].append({"AttributeName": "pk", "AttributeType": "N"})
        update(wire, name, **request)
        described = wait_until_indexes_active(wire, name)
        types = {
            each["AttributeName"]: each["AttributeType"]
            for each in described["AttributeDefinitions"]
        }
        assert types == {"pk": "S", "a": "S"}


@differs_from_dynamodb_local("it answers 500 to some")
def test_indexes_have_the_billing_mode_of_the_table(wire: WireClient):
    with a_table(wire, "one", "two") as name:
        assert refused(wire, name, **PROVISIONED) == (
            "ValidationException",
            f"{INVALID}ProvisionedThroughput must be specified for index: one,two",
        )
        update(wire, name, **PROVISIONED, **changes(change("one", 2), change("two", 3)))
        described = wait_until_indexes_active(wire, name)
        throughput = indexes(described)["two"]["ProvisionedThroughput"]
        assert throughput["ReadCapacityUnits"] == 3
        update(wire, name, BillingMode="PAY_PER_REQUEST")
        described = wait_until_indexes_active(wire, name)
        throughput = indexes(described)["two"]["ProvisionedThroughput"]
        assert throughput["ReadCapacityUnits"] == 0


@differs_from_dynamodb_local("other words for some")
@pytest.mark.parametrize(
    ("members", "refusal"),
    [
        (
            changes({}),
            (
                "ValidationException",
                (
                    f"{INVALID}One of GlobalSecondaryIndexUpdate.Update, "
                    "GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not "
                    "be null"
                ),
            ),
        ),
        (
            changes(change("one", 2), delete("one")),
            (
                "ValidationException",
                (
                    f"{INVALID}Only one global secondary index update per index is allowed "
                    "simultaneously. Index: one"
                ),
            ),
        ),
        (changes(delete("one"), delete("two")), ("LimitExceededException", ONLY_ONE)),
        (
            changes({**delete("one"), "Create": global_index("by-a", "a", **units(1))}),
            (
                "ValidationException",
                (
                    f"{INVALID}Only one of GlobalSecondaryIndexUpdate.Update, "
                    "GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete may be "
                    "specified"
                ),
            ),
        ),
        (
            changes(change("one", 1)),
            (
                "ValidationException",
                (
                    "The provisioned throughput for the index one will not change. The requested "
                    "value equals the current value. Current ReadCapacityUnits provisioned for "
                    "index one: 1. Requested ReadCapacityUnits: 1. Current WriteCapacityUnits "
                    "provisioned for index one: 1. Requested WriteCapacityUnits: 1. Refer to the "
                    "Amazon DynamoDB Developer Guide for current limits and how to request higher "
                    "limits."
                ),
            ),
        ),
        (
            {
                **create("by-a", "a", **units(1)),
                "AttributeDefinitions": [
                    {"AttributeName": "a", "AttributeType": "S"},
                    {"AttributeName": "a", "AttributeType": "N"},
                ],
            },
            ("ValidationException", "Attribute Name is duplicated: a"),
        ),
        (
            create("one", "a", **units(1)),
            ("ValidationException", "Attempting to create an index which already exists"),
        ),
        (
            create("by-a", "a"),
            (
                "ValidationException",
                f"{INVALID}ProvisionedThroughput must be specified for index: by-a",
            ),
        ),
        (
            changes({"Create": global_index("by-a", "a", **units(1))}),
            (
                "ValidationException",
                f"{INVALID}AttributeDefinitions is not specified for index: by-a",
            ),
        ),
    ],
)
def test_an_invalid_change_is_refused(
    lanes: LanesClient, provisioned: str, members: Any, refusal: Any
):
    assert refused(lanes, provisioned, **members) == refusal


@differs_from_dynamodb_local("other words")
@pytest.mark.parametrize("members", [changes(delete("nothing")), changes(change("nothing", 2))])
def test_an_index_that_is_missing_is_not_found(lanes: LanesClient, provisioned: str, members: Any):
    assert refused(lanes, provisioned, **members) == (
        "ResourceNotFoundException",
        f"Requested resource not found: Index nothing for table {provisioned}",
    )


@differs_from_dynamodb_local("it takes some of them")
@pytest.mark.parametrize("index", [create("by-a", "a", **units(1)), changes(delete("one"))])
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (units(8, 8), INVALID + "You cannot create or delete index while updating table IOPS"),
        (
            {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}},
            INVALID + "You cannot create or delete index while changing stream status",
        ),
        (
            {"DeletionProtectionEnabled": True},
            INVALID + "DeletionProtection modification must be the only operation in the request",
        ),
        (
            {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
            INVALID + "TableClass modification must be the only operation in the request",
        ),
    ],
)
def test_an_index_is_not_added_or_deleted_with_other_changes(
    lanes: LanesClient, provisioned: str, index: Any, members: Any, message: str
):
    before = lanes("DescribeTable", {"TableName": provisioned})
    assert refused(lanes, provisioned, **index, **members) == ("ValidationException", message)
    assert lanes("DescribeTable", {"TableName": provisioned}) == before


@differs_from_dynamodb_local("other words")
def test_a_21st_index_is_refused(wire: WireClient):
    with a_table(wire, *[f"index-{number}" for number in range(20)]) as name:
        assert refused(wire, name, **create("by-a", "a")) == (
            "LimitExceededException",
            (
                "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table "
                "limit of 20"
            ),
        )


@differs_from_dynamodb_local("other words")
def test_warm_throughput_of_an_index_is_not_lowered(lanes: LanesClient, provisioned: str):
    warm = {"ReadUnitsPerSecond": 0}
    lower = changes({"Update": {"IndexName": "one", "WarmThroughput": warm}})
    assert refused(lanes, provisioned, **lower) == (
        "ValidationException",
        (
            f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for index one is lower than "
            "ReadCapacityUnits of ProvisionedThroughput"
        ),
    )


@pytest.fixture(scope="module")
def provisioned(wire: WireClient) -> Iterator[str]:
    """A provisioned table with the indexes ``one`` and ``two``."""
    with a_table(wire, "one", "two", **PROVISIONED) as name:
        yield name


def test_more_than_one_index_at_a_time_is_refused(wire: WireClient, provisioned: str):
    both = create("by-a", "a", **units(1))
    both["GlobalSecondaryIndexUpdates"].append(delete("one"))
    assert refused(wire, provisioned, **both) == ("LimitExceededException", ONLY_ONE)


# -- phases that never end, on separate servers -------------------------------------------------


@pytest.fixture(scope="module")
def held_in_phase_1() -> Iterator[WireClient]:
    """A server on which an added index stays in the phase of resource allocation."""
    with (
        running_server("--index-allocation-seconds", FOR_EVER) as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        yield wire


@pytest.fixture(scope="module")
def allocating(held_in_phase_1: WireClient) -> str:
    """A provisioned table with the index ``one``, to which ``added`` is being added."""
    name = "allocating"
    request = definition("pk:S", "b:S", name=name, KeySchema=key_schema("pk"), **PROVISIONED)
    request["GlobalSecondaryIndexes"] = [global_index("one", "b", **units(1))]
    held_in_phase_1("CreateTable", request)
    wait_until_active(held_in_phase_1, name)
    update(held_in_phase_1, name, **create("added", "a", **units(1)))
    return name


@ours_alone("no other server can be held in a phase")
@pytest.mark.parametrize(
    ("members", "refusal"),
    [
        (
            changes(delete("added")),
            (
                "ResourceInUseException",
                (
                    "Attempt to change a resource which is still in use: Index creation is in "
                    "resource allocation phase. Retry deletion during backfilling phase or when "
                    "the index is active. Table: allocating Index: added"
                ),
            ),
        ),
        (
            changes(change("added", 2)),
            ("ResourceInUseException", f"{IN_USE} created but not backfilling."),
        ),
        (changes(delete("one")), ("LimitExceededException", ONLY_ONE)),
        (create("other", "c", **units(1)), ("LimitExceededException", ONLY_ONE)),
        (
            units(8, 8),
            (
                "ResourceInUseException",
                (
                    "Attempt to change a resource which is still in use: Can't change table IOPS "
                    "when an index is being created. Table: allocating Indexes: [added]"
                ),
            ),
        ),
    ],
)
def test_phase_1_refuses_these_changes(
    held_in_phase_1: WireClient, allocating: str, members: Any, refusal: Any
):
    assert state(held_in_phase_1, allocating, "added") == ("CREATING", False)
    assert refused(held_in_phase_1, allocating, **members) == refusal


@ours_alone("no other server can be held in a phase")
def test_phase_1_allows_these_changes(held_in_phase_1: WireClient, allocating: str):
    wire = held_in_phase_1
    put(wire, allocating, "1", a={"N": "1"})
    protected = update(wire, allocating, DeletionProtectionEnabled=True)
    assert (protected["TableStatus"], protected["DeletionProtectionEnabled"]) == ("UPDATING", True)
    update(wire, allocating, DeletionProtectionEnabled=False)
    update(wire, allocating, **changes(change("one", 4)))
    while state(wire, allocating, "one") != ("ACTIVE", None):
        pass
    assert state(wire, allocating, "added") == ("CREATING", False)
    assert wire.refused("DeleteTable", {"TableName": allocating}) == CHANGING_INDEXES
    for operation, condition in (("Scan", {}), ("Query", QUERY)):
        request = {"TableName": allocating, "IndexName": "added", **condition}
        assert wire.refused(operation, request) == (
            "ValidationException",
            "Cannot read from backfilling global secondary index: added",
        )


QUERY = {"KeyConditionExpression": "a = :a", "ExpressionAttributeValues": {":a": {"S": "x"}}}


_WRITES_UNTIL_IT_WOULD_BE_THERE = 30


@pytest.fixture(scope="module")
def held_in_phase_2() -> Iterator[WireClient]:
    """A server on which an added index never catches up with the writes during its backfill."""
    with (
        running_server("--gsi-lag", f"fixed:{FOR_EVER}") as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        yield wire


def begin_to_fill(wire: WireClient, name: str) -> None:
    """Create a provisioned table with the index ``one``, and start the backfill of ``added``."""
    request = definition("pk:S", "b:S", name=name, KeySchema=key_schema("pk"), **PROVISIONED)
    request["GlobalSecondaryIndexes"] = [global_index("one", "b", **units(1))]
    wire("CreateTable", request)
    wait_until_active(wire, name)
    number = 0
    while True:
        update(wire, name, **create("added", "a", **units(1)))
        # Write in a loop, so that one write happens during the backfill; the index then waits for
        # it.
        while state(wire, name, "added") not in (("CREATING", True), ("ACTIVE", None)):
            put(wire, name, str(number), a={"S": "x"})
            number += 1
        for _ in range(_WRITES_UNTIL_IT_WOULD_BE_THERE):
            put(wire, name, str(number), a={"S": "x"})
            number += 1
        if state(wire, name, "added") == ("CREATING", True):
            return
        # No write happened during the backfill, so delete the index and try again.
        wait_until_indexes_active(wire, name)
        update(wire, name, **changes(delete("added")))
        wait_until_indexes_active(wire, name)


@ours_alone("no other server can be held in a phase")
def test_phase_2_refuses_and_allows_these_changes(held_in_phase_2: WireClient):
    wire, name = held_in_phase_2, "filling"
    begin_to_fill(wire, name)
    for members in (changes(delete("one")), create("other", "c", **units(1))):
        assert refused(wire, name, **members) == ("LimitExceededException", ONLY_ONE)
    assert wire.refused("DeleteTable", {"TableName": name}) == CHANGING_INDEXES
    assert wire.refused("Scan", {"TableName": name, "IndexName": "added"}) == (
        "ValidationException",
        "Cannot read from backfilling global secondary index: added",
    )
    assert setting(wire, name, "1", "a", {"N": "1"}) == "ValidationException"
    update(wire, name, **units(9, 9))
    wait_until_active(wire, name)
    shown = indexes(update(wire, name, **changes(change("one", 3), change("added", 4))))["added"]
    assert (shown["IndexStatus"], shown["Backfilling"]) == ("UPDATING", True)
    while state(wire, name, "added") != ("CREATING", True):
        pass


@ours_alone("an index of another server may be filled before")
def test_an_index_is_deleted_while_it_is_filled():
    with (
        running_server("--gsi-lag", "fixed:1") as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        begin_to_fill(wire, "filling")
        update(wire, "filling", **changes(delete("added")))
        assert indexes(wait_until_indexes_active(wire, "filling")).keys() == {"one"}
        wire("DeleteTable", {"TableName": "filling"})

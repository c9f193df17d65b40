"""Throttling: requests beyond a table's capacity, the errors, and the throttling modes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.clients.clients import Answer, boto3_client
from tests.support.servers.capacity import (
    ARN,
    PROVISIONED,
    CapacityServer,
    capacity_server,
    item,
    reasons,
    throughput,
    units,
)
from tests.support.servers.server import running_server
from tests.support.tables.tables import definition, global_index, local_index

pytestmark = pytest.mark.ours_alone("no other server has a clock to set")

TAG = "dynactor:throttling"
TABLE_MESSAGE = (
    "The level of configured provisioned throughput for the table was exceeded. Consider "
    "increasing your provisioning level with the UpdateTable API."
)
MAXIMUM_MESSAGE = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"


@pytest.fixture(scope="module")
def served() -> Iterator[CapacityServer]:
    with capacity_server() as served:
        yield served


def tagged(value: str) -> dict[str, Any]:
    return {"Tags": [{"Key": TAG, "Value": value}]}


def bounded(write: int) -> dict[str, Any]:
    """The settings of an on-demand table with a maximum, which a few small writes reach."""
    return {"OnDemandThroughput": {"MaxReadRequestUnits": 1, "MaxWriteRequestUnits": write}}


def error_name(answer: Answer) -> str:
    assert answer.status == 400, answer.body
    name: str = answer.json["__type"].partition("#")[2]
    return name


# -- throttled requests ---------------------------------------------------------------------


def test_a_table_refuses_the_write_after_its_last_unit(served):
    name = served.table(**units(5, 5))

    assert served.puts_until_refused(name) == 5
    answer = served.put(name, item("a"))

    assert answer.status == 400
    assert answer.json == {
        "__type": f"com.amazonaws.dynamodb.v20120810#{PROVISIONED}",
        "message": TABLE_MESSAGE,
        "ThrottlingReasons": [
            {"reason": "TableWriteProvisionedThroughputExceeded", "resource": ARN + name}
        ],
    }


def test_units_are_added_over_time_and_saved_for_300_seconds(served):
    name = served.table(**units(5, 2))
    served.puts_until_refused(name)
    accepted = []
    for seconds in (1, 3, 299, 3_000):
        served.clock.step(seconds)
        accepted.append(served.puts_until_refused(name))

    assert accepted == [2, 6, 598, 600]


def test_in_real_time_boto3_is_throttled_with_the_reason():
    with (
        running_server("--throttling", "auto", "--initial-burst-seconds", "1") as server,
        closing(boto3_client(server.endpoint)) as client,
    ):
        request = definition("pk:S", **units(5, 5))
        name = request["TableName"]
        began = time.monotonic()
        client.create_table(**request)
        accepted, refusals = 0, []
        # Each put takes 4 units, so puts are throttled for most of a second.
        while accepted < 4:
            try:
                client.put_item(TableName=name, Item=item("a", 4_000))
                accepted += 1
            except client.exceptions.ProvisionedThroughputExceededException as error:
                refusals.append(error.response)
        took_seconds = time.monotonic() - began

    # The last put was accepted with at least one unit left, so it does not count.
    assert (accepted - 1) * 4 < 5 + 5 * took_seconds
    assert refusals[0]["Error"] == {"Code": PROVISIONED, "Message": TABLE_MESSAGE}
    assert refusals[0]["ThrottlingReasons"] == [
        {"reason": "TableWriteProvisionedThroughputExceeded", "resource": ARN + name}
    ]


def test_a_write_takes_units_for_its_size_and_may_make_the_balance_negative(served):
    name = served.table(**units(5, 5))

    assert served.put(name, item("a", 10_000)).status == 200
    served.clock.step(1)
    assert served.put(name, item("a")).status == 400
    served.clock.step(0.5)
    assert served.put(name, item("a")).status == 200


def test_a_throttled_write_has_no_effect(served):
    name = served.table(**units(5, 1))
    served.put(name, item("a", v="1"))

    assert served.put(name, item("a", v="2")).status == 400

    found = served.wire("GetItem", {"TableName": name, "Key": item("a")})
    assert found["Item"]["v"] == {"S": "1"}


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("PutItem", {"Item": item("a")}),
        ("UpdateItem", {"Key": item("a"), "AttributeUpdates": {"v": {"Value": {"S": "1"}}}}),
        ("DeleteItem", {"Key": item("a")}),
    ],
)
def test_every_write_takes_units(served, operation, members):
    name = served.table(**units(5, 3))

    assert served.until_refused(operation, {"TableName": name, **members}) == 3


@pytest.mark.parametrize(
    ("operation", "members", "answered"),
    [
        ("GetItem", {"Key": item("a")}, 8),
        ("GetItem", {"Key": item("a"), "ConsistentRead": True}, 4),
        ("GetItem", {"Key": item("not there"), "ConsistentRead": True}, 4),
        ("Query", {"KeyConditionExpression": "pk = :pk"}, 8),
        ("Query", {"KeyConditionExpression": "pk = :pk", "ConsistentRead": True}, 4),
        ("Scan", {}, 8),
        ("Scan", {"ConsistentRead": True}, 4),
    ],
)
def test_every_read_takes_the_units_of_its_items(served, operation, members, answered):
    name = served.table(**units(4, 1))
    served.put(name, item("a"))
    if operation == "Query":
        members = members | {"ExpressionAttributeValues": {":pk": {"S": "a"}}}
    request = {"TableName": name, **members}

    assert served.until_refused(operation, request) == answered

    answer = served.wire.send(operation, request)
    assert error_name(answer) == PROVISIONED
    assert reasons(answer) == [("TableReadProvisionedThroughputExceeded", name)]


def test_a_page_takes_its_units_after_it_is_read_and_the_next_page_waits(served):
    name = served.table("pk:S", "sk:S", **units(4, 100))
    for number in range(10):
        served.wire("PutItem", {"TableName": name, "Item": item("a", 8_000, sk=f"{number}")})
    query = {
        "TableName": name,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "a"}},
    }

    # The page has 80,000 bytes: 20 blocks of half a unit, although only 4 units were left.
    assert served.wire("Query", query)["Count"] == 10
    served.clock.step(1)
    assert served.wire.send("Query", query).status == 400
    served.clock.step(1)
    assert served.wire.send("Query", query).status == 200


def test_a_query_on_a_local_index_takes_the_tables_units(served):
    index = local_index("by-v", "pk", "v")
    name = served.table("pk:S", "sk:S", "v:S", indexes=(index,), **units(1, 5))
    query = {
        "TableName": name,
        "IndexName": "by-v",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "a"}},
    }

    assert served.until_refused("Query", query) == 2

    key = {"pk": {"S": "a"}, "sk": {"S": "a"}}
    assert served.wire.send("GetItem", {"TableName": name, "Key": key}).status == 400


def test_a_scan_of_several_partitions_takes_units_of_each():
    with capacity_server("--partitions-per-table", "4") as served:
        name = served.table(**units(4, 40))
        assert served.wire("Scan", {"TableName": name, "ConsistentRead": True})["Count"] == 0

        # The scan took one unit of each partition, and each had only one.
        keys = [f"{number}" for number in range(40)]
        gets = [
            served.wire.send("GetItem", {"TableName": name, "Key": item(pk)}).status for pk in keys
        ]

    assert gets == [400] * 40


def test_a_scan_ends_before_a_partition_without_units_and_continues_there_later():
    with capacity_server("--partitions-per-table", "4") as served:
        name = served.table(**units(4, 400))
        for number in range(40):
            served.put(name, item(f"{number}"))
        # The last item of a scan is in the last partition.
        *_, last = (found["pk"]["S"] for found in scanned(served, name))
        served.clock.step(1)
        get = {"TableName": name, "Key": item(last), "ConsistentRead": True}
        served.until_refused("GetItem", get)
        request = {"TableName": name, "ConsistentRead": True}

        page = served.wire("Scan", request | {"ReturnConsumedCapacity": "TOTAL"})
        rest = request | {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        refused = served.wire.send("Scan", rest)

        assert page["ConsumedCapacity"]["CapacityUnits"] == 3
        assert 0 < page["Count"] < 40
        assert error_name(refused) == PROVISIONED
        assert reasons(refused) == [("TableReadProvisionedThroughputExceeded", name)]
        served.clock.step(2)
        assert page["Count"] + served.wire("Scan", rest)["Count"] == 40


def test_a_statement_with_several_keys_returns_the_items_before_the_refused_one():
    with capacity_server("--partitions-per-table", "4") as served:
        name = served.table(**units(4, 400))
        for number in range(40):
            served.put(name, item(f"{number}"))
        order = [found["pk"]["S"] for found in scanned(served, name)]
        # The statement reads the item of the first partition before the item of the last one.
        first, last = min(order[:5]), max(order[-5:])
        served.clock.step(1)
        get = {"TableName": name, "Key": item(last), "ConsistentRead": True}
        served.until_refused("GetItem", get)
        text = f'SELECT * FROM "{name}" WHERE pk IN [?, ?]'
        parameters = [{"S": first}, {"S": last}]
        request = {"Statement": text, "Parameters": parameters, "ConsistentRead": True}

        part = served.wire("ExecuteStatement", request)
        rest = request | {"NextToken": part["NextToken"]}

        assert part["Items"] == [item(first)]
        assert served.wire.send("ExecuteStatement", rest).status == 400
        served.clock.step(2)
        assert served.wire("ExecuteStatement", rest)["Items"] == [item(last)]


def scanned(served: CapacityServer, name: str) -> list[dict[str, Any]]:
    """All items in the order of a scan."""
    found: list[dict[str, Any]] = served.wire("Scan", {"TableName": name})["Items"]
    return found


def test_a_failed_condition_still_takes_the_units_of_the_item(served):
    name = served.table(**units(5, 6))
    served.put(name, item("a", 2_500))
    failing = {"ConditionExpression": "attribute_not_exists(pk)"}

    first, second = (served.put(name, item("a"), **failing) for _ in range(2))

    assert error_name(first) == "ConditionalCheckFailedException"
    assert error_name(second) == PROVISIONED
    assert served.metrics("consumed_write_capacity_units", name) == {("",): 6}


def test_a_failed_condition_takes_the_units_of_the_larger_of_old_and_new_item(served):
    """The example of the guide: replacing an item of 300 KB by one of 310 KB costs 310 KB."""
    name = served.table(**units(5, 2_000))
    served.put(name, item("a", 300 * 1_024))
    for pk in "ab":
        larger = item(pk, 310 * 1_024)
        answer = served.put(name, larger, ConditionExpression="attribute_exists(v)")
        assert error_name(answer) == "ConditionalCheckFailedException"

    assert served.metrics("consumed_write_capacity_units", name) == {("",): 300 + 310 + 310}


def test_expired_items_are_deleted_without_units(served):
    name = served.table(**units(5, 4))
    setting = {"Enabled": True, "AttributeName": "at"}
    served.wire("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": setting})
    due = {"at": {"N": str(int(served.clock.now()) + 1)}}
    for made in (item("a") | due, item("b") | due, item("c") | due, item("d", 30_000)):
        assert served.put(name, made).status == 200
    consumed = served.metrics("consumed_write_capacity_units", name)

    served.clock.step(3)
    # The table's balance is still negative.
    assert served.put(name, item("e")).status == 400
    while served.metrics("time_to_live_deleted_item_count", name) != {(): 3}:
        assert served.metrics("consumed_write_capacity_units", name) == consumed

    assert served.metrics("consumed_write_capacity_units", name) == consumed == {("",): 33}


# -- batches --------------------------------------------------------------------------------


def writes(*keys: str, size_bytes: int = 0) -> list[dict[str, Any]]:
    return [{"PutRequest": {"Item": item(pk, size_bytes)}} for pk in keys]


def test_a_batch_returns_throttled_writes_as_unprocessed(served):
    name, other = served.table(**units(5, 3)), served.table(**units(5, 5))
    request = {name: writes("a", "b", "c", "d", "e"), other: writes("a")}

    answer = served.wire("BatchWriteItem", {"RequestItems": request})

    assert answer["UnprocessedItems"] == {name: writes("d", "e")}
    assert served.metrics("throttled_requests", name) == {}
    assert served.metrics("write_throttle_events", name) == {
        ("", "TableWriteProvisionedThroughputExceeded"): 2
    }


def test_a_batch_fails_if_all_writes_are_throttled(served):
    name, other = served.table(**units(5, 1)), served.table(**units(5, 1))
    for each in (name, other):
        served.put(each, item("a", 3_000))

    request = {name: writes("a", "b"), other: writes("a")}
    answer = served.wire.send("BatchWriteItem", {"RequestItems": request})

    assert error_name(answer) == PROVISIONED
    assert reasons(answer) == [("TableWriteProvisionedThroughputExceeded", name)]
    assert served.metrics("throttled_requests", name) == {("BatchWriteItem",): 1}


def test_a_batch_returns_throttled_keys_as_unprocessed(served):
    name, other = served.table(**units(2, 5)), served.table(**units(2, 5))
    asked = {"Keys": [item(pk) for pk in "abcde"], "ConsistentRead": True}
    request = {name: asked, other: {"Keys": [item("a")]}}
    served.put(name, item("a"))

    answer = served.wire(
        "BatchGetItem", {"RequestItems": request, "ReturnConsumedCapacity": "TOTAL"}
    )

    assert answer["Responses"] == {name: [item("a")], other: []}
    assert answer["UnprocessedKeys"] == {
        name: {"Keys": [item(pk) for pk in "cde"], "ConsistentRead": True}
    }
    assert [each["CapacityUnits"] for each in answer["ConsumedCapacity"]] == [2.0, 0.5]
    assert served.metrics("consumed_read_capacity_units", name) == {("",): 2}


def test_a_batch_fails_if_all_reads_are_throttled(served):
    name = served.table(**units(1, 5))
    request = {"RequestItems": {name: {"Keys": [item("a"), item("b")], "ConsistentRead": True}}}
    assert served.wire("BatchGetItem", request)["UnprocessedKeys"][name]["Keys"] == [item("b")]

    answer = served.wire.send("BatchGetItem", request)

    assert error_name(answer) == PROVISIONED
    assert reasons(answer) == [("TableReadProvisionedThroughputExceeded", name)]
    assert served.metrics("throttled_requests", name) == {("BatchGetItem",): 1}


# -- modes ----------------------------------------------------------------------------------


def test_by_default_an_on_demand_table_is_observed_and_its_throttle_events_are_counted(served):
    name = served.table(**bounded(2))

    assert [served.put(name, item("a")).status for _ in range(5)] == [200] * 5

    assert served.metrics("observed_throttle_events", name) == {
        ("", "TableWriteMaxOnDemandThroughputExceeded"): 3
    }
    assert served.metrics("write_throttle_events", name) == {}
    assert served.metrics("consumed_write_capacity_units", name) == {("",): 5}


def test_a_tag_enforces_the_limits_of_an_on_demand_table(served):
    name = served.table(**bounded(2), **tagged("enforce"))

    assert served.puts_until_refused(name) == 2
    answer = served.put(name, item("a"))

    assert answer.json == {
        "__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException",
        "message": MAXIMUM_MESSAGE,
        "throttlingReasons": [
            {"reason": "TableWriteMaxOnDemandThroughputExceeded", "resource": ARN + name}
        ],
    }


def test_a_tag_switches_throttling_of_a_table_in_use(served):
    name = served.table(**units(1, 1))
    served.put(name, item("a"))
    resource = {"ResourceArn": ARN + name}
    statuses = []
    for value in ("observe", "off", "enforce", "off"):
        served.wire("TagResource", resource | tagged(value))
        statuses.append(served.put(name, item("a")).status)
    served.wire("UntagResource", resource | {"TagKeys": [TAG]})
    statuses.append(served.put(name, item("a")).status)

    assert statuses == [200, 200, 400, 200, 400]
    assert sum(served.metrics("observed_throttle_events", name).values()) == 1


def test_a_tag_with_an_unknown_throttling_mode_is_refused(served):
    request = definition("pk:S", **tagged("enforced"))

    refusal = served.wire.refused("CreateTable", request)

    assert refusal.type == "ValidationException"
    assert "dynactor:throttling must be one of auto, enforce, observe, off" in refusal.message


@pytest.mark.parametrize(
    ("mode", "status", "observed"), [("off", 200, 0), ("observe", 200, 2), ("enforce", 400, 0)]
)
def test_the_servers_mode_applies_to_tables_without_a_tag(mode, status, observed):
    with capacity_server("--throttling", mode) as served:
        for name in (served.table(**units(1, 1)), served.table(**bounded(1))):
            statuses = [served.put(name, item("a")).status for _ in range(3)]
            assert statuses == [200, status, status]
            assert sum(served.metrics("observed_throttle_events", name).values()) == observed
        name = served.table(**units(1, 1), **tagged("enforce"))
        assert served.puts_until_refused(name) == 1


def test_a_table_at_the_accounts_quota_answers_with_request_limit_exceeded():
    with capacity_server("--partitions-per-table", "64") as served:
        warm = {"WarmThroughput": {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 40_000}}
        name = served.table(**warm, **tagged("enforce"))
        for number in range(1_000):
            answer = served.put(name, item(f"{number}", 400_000))
            if answer.status != 200 and not reasons(answer)[0][0].endswith(
                "KeyRangeThroughputExceeded"
            ):
                break

    assert error_name(answer) == "RequestLimitExceeded"
    assert answer.json["message"].startswith("Throughput exceeds the current throughput limit for")
    assert answer.json["ThrottlingReasons"] == [
        {"reason": "TableWriteAccountLimitExceeded", "resource": ARN + name}
    ]


# -- changes of throughput ------------------------------------------------------------------


def test_new_units_are_valid_when_update_table_is_answered(served):
    name = served.table(**units(1, 1))
    served.puts_until_refused(name)
    served.wire("UpdateTable", {"TableName": name, "ProvisionedThroughput": throughput(1, 20)})
    served.clock.step(1)

    assert served.puts_until_refused(name) == 20

    served.wire("UpdateTable", {"TableName": name, "ProvisionedThroughput": throughput(1, 2)})
    served.clock.step(1)
    assert served.puts_until_refused(name) == 2


def test_units_before_a_change_were_saved_at_the_old_rate(served):
    name = served.table(**units(1, 1))
    served.clock.step(100)
    served.wire("UpdateTable", {"TableName": name, "ProvisionedThroughput": throughput(1, 50)})

    assert served.puts_until_refused(name) == 101


def test_a_table_that_becomes_on_demand_is_no_longer_throttled(served):
    name = served.table(**units(1, 1))
    served.puts_until_refused(name)

    served.wire("UpdateTable", {"TableName": name, "BillingMode": "PAY_PER_REQUEST"})

    assert [served.put(name, item("a")).status for _ in range(9)] == [200] * 9


def lowered(name: str, write: int) -> dict[str, Any]:
    return {"TableName": name, "ProvisionedThroughput": throughput(1, write)}


def test_units_can_be_lowered_four_times_a_day_and_then_once_an_hour():
    with capacity_server() as served:
        name = served.table(**units(1, 99))
        left = iter(range(98, 0, -1))
        for _ in range(4):
            served.wire("UpdateTable", lowered(name, next(left)))

        refused = served.wire.refused("UpdateTable", lowered(name, 1))
        served.clock.step(3_599)
        still_refused = served.wire.refused("UpdateTable", lowered(name, 1))
        count = 4
        served.clock.step(1)
        while served.wire.send("UpdateTable", lowered(name, next(left))).status == 200:
            count += 1
            if count == 27:
                break
            served.clock.step(3_600)
        described = served.wire("DescribeTable", {"TableName": name})["Table"]
        served.wire("UpdateTable", {"TableName": name, "ProvisionedThroughput": throughput(2, 99)})
        # Advance the clock to the next day.
        served.clock.step(86_400)
        for write in (98, 97, 96, 95):
            served.wire("UpdateTable", lowered(name, write))

    assert refused.type == still_refused.type == "LimitExceededException"
    assert refused.message is not None
    assert refused.message.startswith(
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given "
        "UTC day. After the first 4 decreases, each subsequent decrease in the same UTC day can be "
        "performed at most once every 3600 seconds. Number of decreases today: 4."
    )
    assert count == 27
    assert described["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 27


def test_decreases_of_an_index_count_separately_and_one_too_many_refuses_the_request():
    with capacity_server() as served:
        index = global_index("by-v", "v", ProvisionedThroughput=throughput(1, 20))
        name = served.table(
            "pk:S", "v:S", **one_key(), GlobalSecondaryIndexes=[index], **units(1, 9)
        )

        def update(write: int) -> dict[str, Any]:
            change = {"IndexName": "by-v", "ProvisionedThroughput": throughput(1, write)}
            return {"TableName": name, "GlobalSecondaryIndexUpdates": [{"Update": change}]}

        for write in (19, 18, 17, 16):
            served.wire("UpdateTable", update(write))
        both = update(15) | {"ProvisionedThroughput": throughput(1, 8)}
        refused = served.wire.refused("UpdateTable", both)
        described = served.wire("DescribeTable", {"TableName": name})["Table"]
        served.wire("UpdateTable", lowered(name, 8))

    assert refused.type == "LimitExceededException"
    assert described["ProvisionedThroughput"]["WriteCapacityUnits"] == 9


def one_key() -> dict[str, Any]:
    return {"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}


def test_an_option_sets_how_often_units_can_be_lowered():
    with capacity_server("--throughput-decreases-per-day", "1") as served:
        name = served.table(**units(1, 9))
        served.wire("UpdateTable", lowered(name, 8))

        refused = served.wire.refused("UpdateTable", lowered(name, 7))

    assert refused.message is not None
    assert "After the first 1 decreases" in refused.message


# -- metrics, restart -----------------------------------------------------------------------


def test_metrics_show_consumed_and_refused_units_of_table_and_index(served):
    index = global_index("by-v", "v", ProvisionedThroughput=throughput(1, 1))
    name = served.table("pk:S", "v:S", **one_key(), GlobalSecondaryIndexes=[index], **units(2, 9))
    served.put(name, item("a", v="1"))
    served.put(name, item("b", v="1"))
    served.put(name, item("c"))
    served.wire("GetItem", {"TableName": name, "Key": item("a"), "ConsistentRead": True})

    assert served.metrics("consumed_write_capacity_units", name) == {("",): 2, ("by-v",): 1}
    assert served.metrics("consumed_read_capacity_units", name) == {("",): 1}
    assert served.metrics("write_throttle_events", name) == {
        ("by-v", "IndexWriteProvisionedThroughputExceeded"): 1
    }
    assert served.metrics("throttled_requests", name) == {("PutItem",): 1}


def test_after_a_restart_an_on_demand_table_has_the_capacity_of_its_partitions(tmp_path):
    options = ("--partitions-per-table", "8")
    with capacity_server(*options, data_dir=tmp_path) as served:
        name = served.table(**tagged("enforce"))
        first = units_of_a_second(served, name)
        now = served.clock.now()
        served.server.stop()
    with capacity_server(*options, start=now, data_dir=tmp_path) as served:
        second = units_of_a_second(served, name)

    assert 4_000 <= first < 4_400
    assert second > 5_000


def units_of_a_second(served: CapacityServer, name: str) -> int:
    """The units that a table accepts within one second, in writes of 400 units to many keys."""
    accepted = [served.put(name, item(f"{key}", 400 * 1_024 - 100)).status for key in range(80)]
    return 400 * accepted.count(200)

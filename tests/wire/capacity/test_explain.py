"""The header X-Dynactor-Explain: the units of a request, the reasons, and cheaper alternatives."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.rules.capacity.capacity_table import (
    TABLE_GLOBAL_INDEXES,
    TABLE_INDEXES,
    TABLE_KEYS,
    Bench,
    cases,
    extract_key,
)
from tests.rules.local_indexes.thread import Units, consumed_units
from tests.support.clients.clients import Answer, WireClient
from tests.support.servers.server import PROJECT, running_server
from tests.support.tables.tables import global_index, local_index, table, wait_until_indexes_active

pytestmark = pytest.mark.ours_alone("no other server explains")

ASK = {"X-Dynactor-Explain": "true"}
TELLS = "X-Dynactor-Explanation"
MOST_BYTES = 3_072


@pytest.fixture(scope="module")
def indexed(wire: WireClient) -> Iterator[str]:
    """A table with all kinds of indexes; see capacity_table.txt."""
    indexes = {"indexes": TABLE_INDEXES, "GlobalSecondaryIndexes": list(TABLE_GLOBAL_INDEXES)}
    with table(wire, *TABLE_KEYS, **indexes) as name:
        yield name


def text(size_bytes: int, name: str = "x") -> dict[str, Any]:
    """An attribute whose name and value have this size."""
    return {name: {"S": "x" * (size_bytes - len(name))}}


def explained(answer: Answer) -> dict[str, Any]:
    """The explanation in an answer's header; checks that the header is valid."""
    header = answer.headers[TELLS]
    assert header.isascii()
    assert len(header) <= MOST_BYTES
    explanation: dict[str, Any] = json.loads(header)
    return explanation


def advice(explanation: dict[str, Any]) -> dict[str, float | None]:
    """The possible saving by each rule."""
    return {each["Rule"]: each.get("Saves") for each in explanation.get("Cheaper", ())}


# -- explanations equal ConsumedCapacity ----------------------------------------------------


class Explaining(WireClient):
    """A client that requests an explanation each time, and compares it with ConsumedCapacity."""

    compared = 0

    def __call__(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        answer = self.send(operation, request, ASK)
        assert answer.status == 200, answer.body
        body: dict[str, Any] = answer.json
        consumed = body.get("ConsumedCapacity")
        if consumed is not None:
            told = [
                consumed_units(each)
                for each in (consumed if type(consumed) is list else [consumed])
            ]
            explanation = explained(answer)
            assert explanation["Operation"] == operation
            assert units_of_explanation(explanation) == summed(told)
            self.compared += 1
        return body


def summed(each: list[Units]) -> Units:
    names = {name for units in each for name in units.indexes}
    return Units(
        sum(units.total for units in each),
        sum(units.table for units in each),
        {name: sum(units.indexes.get(name, 0) for units in each) for name in names},
    )


def units_of_explanation(explanation: dict[str, Any]) -> Units:
    """The sums of the parts of an explanation."""
    of_table = 0.0
    indexes: dict[str, float] = {}
    for cost in explanation["Tables"]:
        for read in cost.get("Reads", ()):
            times = read.get("Count", 1)
            if "Index" in read:
                indexes[read["Index"]] = indexes.get(read["Index"], 0) + read["Units"] * times
                of_table += read.get("Fetched", {"Units": 0})["Units"] * times
            else:
                of_table += read["Units"] * times
        for write in cost.get("Writes", ()):
            times = write.get("Count", 1)
            of_table += write["Units"] * times
            for index in write.get("Indexes", ()):
                if index["Change"] != "none":
                    name = index["Index"]
                    indexes[name] = indexes.get(name, 0) + index["Units"] * times
    return Units(explanation["CapacityUnits"], of_table, indexes)


@pytest.mark.parametrize("operation", sorted({case.operation for case in cases()}))
def test_an_explanation_adds_up_to_the_consumed_capacity(endpoint, indexed, pk, operation):
    """The test runs every line of capacity_table.txt."""
    wire = Explaining(endpoint)
    lines = [case for case in cases() if case.operation == operation]
    for number, case in enumerate(lines):
        # A failed write has no ConsumedCapacity, and a Scan also reads the items of other lines.
        if operation != "scan":
            assert Bench(wire, indexed, f"{pk}-{number:03}").run(case).total == case.expected.total
    if operation == "scan":
        request = {"TableName": indexed, "ReturnConsumedCapacity": "INDEXES"}
        assert (
            wire("Scan", request | {"FilterExpression": "attribute_exists(nothing)"})["Count"] == 0
        )
    wire.close()

    assert wire.compared >= len(lines) or operation.startswith("failed-") or operation == "scan"


# -- when an answer is explained ------------------------------------------------------------


def test_without_the_header_there_is_no_explanation(wire: WireClient, indexed: str, pk: str):
    request = {"TableName": indexed, "Key": extract_key(0, pk)}

    assert TELLS not in wire.send("GetItem", request).headers
    assert TELLS not in wire.send("GetItem", request, {"X-Dynactor-Explain": "false"}).headers
    assert TELLS in wire.send("GetItem", request, {"x-dynactor-explain": " True "}).headers


def test_requests_that_cost_nothing_are_not_explained(wire: WireClient, indexed: str, pk: str):
    assert TELLS not in wire.send("DescribeTable", {"TableName": indexed}, ASK).headers
    refused = wire.send("GetItem", {"TableName": indexed, "Key": {"p": {"S": pk}}}, ASK)
    assert refused.status == 400
    assert TELLS not in refused.headers


def test_both_http_lanes_explain(wire: WireClient, indexed: str, pk: str):
    request = {"TableName": indexed, "Key": extract_key(0, pk)}
    fast = wire.send("GetItem", request, ASK)
    # The header TE, which no SDK sends, makes the fast lane pass the request to the full lane.
    plain = wire.send("GetItem", request, {**ASK, "TE": "trailers"})

    assert explained(fast) == explained(plain)


# -- content --------------------------------------------------------------------------------


def test_a_get_explains_its_blocks_and_the_cost_of_a_smaller_item(wire, indexed, pk):
    item = extract_key(0, pk) | text(4_200)
    wire("PutItem", {"TableName": indexed, "Item": item})
    request = {"TableName": indexed, "Key": extract_key(0, pk), "ConsistentRead": True}

    explanation = explained(wire.send("GetItem", request, ASK))

    assert explanation == {
        "Operation": "GetItem",
        "CapacityUnits": 2.0,
        "Tables": [
            {
                "TableName": indexed,
                "CapacityUnits": 2.0,
                "Reads": [
                    {
                        "Read": "Item",
                        "Bytes": 4_300,
                        "Blocks": 2,
                        "Consistent": True,
                        "Units": 2.0,
                        "UnitsOf": indexed,
                        "Rules": ["Arithmetic: Read", "S42"],
                    }
                ],
            }
        ],
        "Cheaper": [
            {
                "Advice": "Read with ConsistentRead false: half the units",
                "Rule": "S42",
                "Saves": 1.0,
            },
            {
                "Advice": "The item is 204 bytes above a multiple of 4 KB",
                "Rule": "Arithmetic: Read",
                "Saves": 1.0,
            },
        ],
    }


def test_a_put_explains_the_change_of_its_entry_in_each_index(wire, indexed, pk):
    before = extract_key(0, pk) | text(10, "a") | text(10, "k") | text(10, "g") | text(10, "j")
    after = before | {"a": {"S": "other"}} | text(1_200)
    after.pop("k")
    wire("PutItem", {"TableName": indexed, "Item": before})

    explanation = explained(wire.send("PutItem", {"TableName": indexed, "Item": after}, ASK))

    [cost] = explanation["Tables"]
    [write] = cost["Writes"]
    assert (write["Write"], write["BytesBefore"], write["BytesAfter"]) == ("put", 140, 1_326)
    assert (write["Bytes"], write["Units"]) == (1_326, 2)
    became = {
        each["Index"]: (each["Change"], each["Units"], each["UnitsOf"], each["Rules"])
        for each in write["Indexes"]
    }
    assert became == {
        "by-all": ("delete and put", 3, indexed, ["S52", "S56"]),
        "by-keys": ("delete", 1, indexed, ["S53"]),
        "by-some": ("none", 0, indexed, ["S50"]),
        "gsi-all": ("put", 2, "gsi-all", ["S111", "S112"]),
        "gsi-keys": ("none", 0, "gsi-keys", ["S109"]),
        "gsi-some": ("put", 2, "gsi-some", ["S111", "S112"]),
    }
    assert cost["CapacityUnits"] == explanation["CapacityUnits"] == 2 + 3 + 1 + 2 + 2
    # Rule S57 suggests two savings: in the global indexes whose entries are rewritten, and in
    # by-all, whose entry is larger than 1 KB.
    assert [each["Saves"] for each in explanation["Cheaper"] if each["Rule"] == "S57"] == [4, 1]


def test_an_update_and_a_delete_explain_both_sizes(wire, indexed, pk):
    request = {"TableName": indexed, "Key": extract_key(0, pk)}
    wire("PutItem", {"TableName": indexed, "Item": extract_key(0, pk) | text(1_000)})
    update = request | {"UpdateExpression": "REMOVE x"}

    updated = explained(wire.send("UpdateItem", update, ASK))
    deleted = explained(wire.send("DeleteItem", request, ASK))
    missing = explained(wire.send("DeleteItem", request, ASK))

    writes = [each["Tables"][0]["Writes"][0] for each in (updated, deleted, missing)]
    assert [(each["Write"], each["Bytes"], each["Units"]) for each in writes] == [
        ("put", 1_100, 2),
        ("delete", 100, 1),
        ("nothing to delete", 0, 1),
    ]
    # There is no advice, because the next write of the smaller item costs less anyway.
    assert advice(updated) == {}


def test_a_write_with_a_false_condition_explains_its_cost(wire, indexed, pk):
    item = extract_key(0, pk) | text(2_000)
    wire("PutItem", {"TableName": indexed, "Item": item})
    condition = {"ConditionExpression": "attribute_not_exists(p)"}

    answer = wire.send("PutItem", {"TableName": indexed, "Item": item, **condition}, ASK)

    assert answer.status == 400
    [cost] = explained(answer)["Tables"]
    assert cost["Writes"] == [
        {
            "Write": "condition failed",
            "Bytes": 2_100,
            "Units": 3,
            "Rules": ["Arithmetic: Write"],
            "BytesBefore": 2_100,
            "BytesAfter": 2_100,
        }
    ]


def query(name: str, pk: str, **members: Any) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeyConditionExpression": "p = :p",
        "ExpressionAttributeValues": {":p": {"S": pk}},
        **members,
    }


def test_a_query_explains_its_fetches_and_the_filtered_items(wire, indexed, pk):
    for number in range(4):
        item = extract_key(number, pk) | text(100, "k") | text(5_000, "y")
        wire("PutItem", {"TableName": indexed, "Item": item})
    request = query(indexed, pk, IndexName="by-keys", Select="ALL_ATTRIBUTES")
    dropping = query(indexed, pk, FilterExpression="attribute_not_exists(y)")

    fetched = explained(wire.send("Query", request, ASK))
    filtered = explained(wire.send("Query", dropping, ASK))

    [read] = fetched["Tables"][0]["Reads"]
    assert (read["Index"], read["UnitsOf"], read["Bytes"]) == ("by-keys", indexed, 800)
    assert (read["Evaluated"], read["Returned"], read["Units"]) == (4, 4, 0.5)
    assert read["Fetched"] == {"Items": 4, "Blocks": 8, "Units": 4.0, "Rules": ["S43", "S44"]}
    assert advice(fetched) == {"S43": 4.0}
    [read] = filtered["Tables"][0]["Reads"]
    assert (read["Bytes"], read["Blocks"], read["Units"]) == (20_800, 6, 3.0)
    assert (read["Evaluated"], read["Returned"]) == (4, 0)
    assert "The filter dropped 4 of 4" in filtered["Cheaper"][0]["Advice"]
    assert filtered["Cheaper"][0]["Saves"] == 2.5


def test_a_query_of_a_global_index_takes_units_of_the_index(wire, indexed, pk):
    request = query(indexed, pk, IndexName="gsi-all")

    [read] = explained(wire.send("Query", request, ASK))["Tables"][0]["Reads"]

    assert (read["Index"], read["UnitsOf"], read["Units"]) == ("gsi-all", "gsi-all", 0.5)
    assert read["Rules"] == ["S99", "S105", "S106"]


def test_the_explanation_of_a_scan_rounds_up_in_each_partition(wire: WireClient):
    with table(wire, "p:S") as name:
        wire("PutItem", {"TableName": name, "Item": {"p": {"S": "a"}}})

        explanation = explained(wire.send("Scan", {"TableName": name}, ASK))

    [read] = explanation["Tables"][0]["Reads"]
    assert (read["Read"], read["Partitions"], read["Blocks"], read["Units"]) == ("Scan", 4, 4, 2.0)
    assert "S158" in advice(explanation)


def test_a_batch_of_reads_explains_the_cost_of_one_query(wire, indexed, pk):
    for number in range(5):
        wire("PutItem", {"TableName": indexed, "Item": extract_key(number, pk) | text(100)})
    keys = [extract_key(number, pk) for number in range(6)]

    explanation = explained(
        wire.send("BatchGetItem", {"RequestItems": {indexed: {"Keys": keys}}}, ASK)
    )

    reads = explanation["Tables"][0]["Reads"]
    assert [(each["Bytes"], each["Units"], each.get("Count", 1)) for each in reads] == [
        (200, 0.5, 5),
        (0, 0.5, 1),
    ]
    [query_instead] = explanation["Cheaper"]
    assert query_instead["Advice"].startswith("Use one Query instead of 6 reads")
    assert query_instead["Saves"] == 2.5


def test_statements_are_explained_as_the_equivalent_operations(wire, indexed, pk):
    def told(operation: str, request: dict[str, Any]) -> list[str]:
        [cost] = explained(wire.send(operation, request, ASK))["Tables"]
        reads = [each["Read"] for each in cost.get("Reads", ())]
        return reads + [each["Write"] for each in cost.get("Writes", ())]

    names = f"'p': '{pk}', 's': 'a'"
    insert = {"Statement": f'INSERT INTO "{indexed}" VALUE {{{names}}}'}
    select = {"Statement": f"SELECT * FROM \"{indexed}\" WHERE p = '{pk}'"}
    scan = {"Statement": f'SELECT * FROM "{indexed}" WHERE x = 1'}
    get = {"Statement": select["Statement"] + " AND s = 'a'"}

    assert told("ExecuteStatement", insert) == ["put"]
    # The second insert fails, because the item exists.
    assert told("ExecuteStatement", insert) == ["condition failed"]
    assert told("ExecuteStatement", select) == ["Query"]
    assert told("ExecuteStatement", scan) == ["Scan"]
    assert told("BatchExecuteStatement", {"Statements": [get]}) == ["Query"]
    assert told("BatchExecuteStatement", {"Statements": [insert]}) == ["condition failed"]


# -- length ---------------------------------------------------------------------------------


def test_an_explanation_that_would_be_too_long_gives_counts(wire, indexed, pk):
    items = [extract_key(number, pk) | text(number + 2) | text(10, "g") for number in range(100)]
    for start in range(0, 100, 25):
        requests = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        answer = wire.send("BatchWriteItem", {"RequestItems": {indexed: requests}}, ASK)
    written = explained(answer)
    keys = [extract_key(number, pk) for number in range(100)]
    read = explained(wire.send("BatchGetItem", {"RequestItems": {indexed: {"Keys": keys}}}, ASK))

    assert written["Summarized"]
    assert written["Tables"] == [
        {
            "TableName": indexed,
            "CapacityUnits": 50.0,
            "Writes": 25,
            "WrittenBytes": sum(110 + number + 2 for number in range(75, 100)),
            "Indexes": [{"Index": "gsi-all", "Writes": 25, "Units": 25}],
        }
    ]
    assert (read["Summarized"], read["CapacityUnits"]) == (True, 50.0)
    assert read["Tables"][0]["Reads"] == 100
    assert advice(read)["Arithmetic: Read"] == 50.0 - 2.0


def test_an_explanation_of_many_tables_gives_their_sum(wire: WireClient):
    names = [f"{number:02}".ljust(255, "t") for number in range(25)]
    for name in names:
        definition = {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
        }
        wire("CreateTable", definition)
    keys = {"Keys": [{"p": {"S": "a"}}]}

    answer = wire.send("BatchGetItem", {"RequestItems": dict.fromkeys(names, keys)}, ASK)
    for name in names:
        wire("DeleteTable", {"TableName": name})

    assert explained(answer) == {
        "Operation": "BatchGetItem",
        "CapacityUnits": 12.5,
        "Summarized": True,
        "TableCount": 25,
    }


# -- docs/EXPLAIN.md ------------------------------------------------------------------------

PAGE = PROJECT / "docs" / "EXPLAIN.md"
THREAD = {
    "TableName": "Thread",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"}
        for name in ("ForumName", "Subject", "LastPostDateTime", "Status")
    ],
    "KeySchema": [
        {"AttributeName": "ForumName", "KeyType": "HASH"},
        {"AttributeName": "Subject", "KeyType": "RANGE"},
    ],
    "LocalSecondaryIndexes": [
        local_index("LastPostIndex", "ForumName", "LastPostDateTime", "KEYS_ONLY")
    ],
    "GlobalSecondaryIndexes": [global_index("ByStatus", "Status")],
}


def thread(number: int, day: int) -> dict[str, Any]:
    texts = {
        "ForumName": "EC2",
        "Subject": f"Subject {number}",
        "LastPostDateTime": f"2026-03-{day:02}",
        "Status": "open",
        "Tags": "t" * 1_100,
    }
    return {name: {"S": value} for name, value in texts.items()}


def test_the_page_shows_the_answers_of_the_server():
    key = {name: thread(1, 2)[name] for name in ("ForumName", "Subject")}
    requests = {
        "PutItem": {"Item": thread(0, 9)},
        "Query": {
            "IndexName": "LastPostIndex",
            "KeyConditionExpression": "ForumName = :f",
            "ExpressionAttributeValues": {":f": {"S": "EC2"}},
            "ProjectionExpression": "Subject, Tags",
            "ConsistentRead": True,
        },
    }
    with running_server() as server, closing(WireClient(server.endpoint)) as wire:
        wire("CreateTable", THREAD)
        wait_until_indexes_active(wire, "Thread")
        for number in range(4):
            wire("PutItem", {"TableName": "Thread", "Item": thread(number, number + 1)})
        answered = {
            operation: wire.send(operation, {"TableName": "Thread", **request}, ASK)
            for operation, request in requests.items()
        }
        opened = {
            "TableName": "Thread",
            "Key": key,
            "ConditionExpression": "#s = :open",
            "ExpressionAttributeNames": {"#s": "Status"},
            "ExpressionAttributeValues": {":open": {"S": "closed"}},
        }
        answered["TransactWriteItems"] = transact(
            wire,
            {"Put": {"TableName": "Thread", "Item": thread(7, 10)}},
            {"ConditionCheck": opened},
        )

    page = PAGE.read_text()
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    for operation in ("PutItem", "Query", "TransactWriteItems"):
        assert explained(answered[operation]) in shown


# -- transactions ---------------------------------------------------------------------------

TRANSACTIONS = "Arithmetic: Transactions"


def transact(wire: WireClient, *actions: dict[str, Any], **members: Any) -> Answer:
    request = {"TransactItems": list(actions), "ReturnConsumedCapacity": "INDEXES", **members}
    return wire.send("TransactWriteItems", request, ASK)


def consumed(answer: Answer) -> Units:
    return summed([consumed_units(each) for each in answer.json["ConsumedCapacity"]])


def test_a_transaction_of_writes_takes_double_units_of_each_item(wire, indexed, simple, pk):
    old = extract_key(0, pk) | text(10, "a")
    wire("PutItem", {"TableName": indexed, "Item": old})
    new = old | text(1_200)
    check = {"TableName": simple, "Key": {"pk": {"S": pk}}}

    answer = transact(
        wire,
        {"Put": {"TableName": indexed, "Item": new}},
        {"Delete": {"TableName": indexed, "Key": extract_key(1, pk)}},
        {"ConditionCheck": check | {"ConditionExpression": "attribute_not_exists(pk)"}},
    )

    explanation = explained(answer)
    assert explanation["Operation"] == "TransactWriteItems"
    assert units_of_explanation(explanation) == consumed(answer)
    assert "Cancelled" not in explanation
    of_indexed, of_simple = explanation["Tables"]
    put, delete = of_indexed["Writes"]
    assert (put["Write"], put["Bytes"], put["Units"]) == ("put", 1_310, 4)
    assert (delete["Write"], delete["Units"]) == ("nothing to delete", 2)
    [by_all] = [each for each in put["Indexes"] if each["Index"] == "by-all"]
    assert (by_all["Change"], by_all["Units"]) == ("put", 2)
    assert of_simple["Writes"] == [
        {
            "Write": "condition check",
            "Bytes": 0,
            "Units": 2,
            "Rules": ["Arithmetic: Write", TRANSACTIONS],
        }
    ]
    # The possible savings are half of the table's 6 units, and the 2 units of the check.
    saved = [each["Saves"] for each in explanation["Cheaper"] if each["Rule"] == TRANSACTIONS]
    assert saved == [3.0, 2.0]


@pytest.mark.parametrize("partitions", ["one", "several"])
def test_a_cancelled_transaction_explains_its_cost(wire, simple, pk, partitions):
    keys = [f"{pk}-{number}" for number in range(1 if partitions == "one" else 6)]
    puts = [
        {"Put": {"TableName": simple, "Item": {"pk": {"S": key}} | text(1_500)}} for key in keys
    ]
    failing = {
        "TableName": simple,
        "Key": {"pk": {"S": f"{pk}-none"}},
        "ConditionExpression": "attribute_exists(pk)",
    }

    answer = transact(wire, *puts, {"ConditionCheck": failing})

    assert answer.status == 400
    explanation = explained(answer)
    assert explanation["Cancelled"] is True
    [cost] = explanation["Tables"]
    writes = {each["Write"]: each for each in cost["Writes"]}
    assert writes["put"]["Units"] == 4
    assert sum(each.get("Count", 1) for each in cost["Writes"] if each["Write"] == "put") == len(
        keys
    )
    assert writes["condition failed"]["Units"] == 2
    assert cost["CapacityUnits"] == explanation["CapacityUnits"] == 4 * len(keys) + 2


def test_a_transaction_without_units_is_not_explained(wire, simple):
    action = {"Delete": {"TableName": simple, "Key": {"pk": {"N": "1"}}}}
    answer = transact(wire, action)
    assert answer.status == 400
    assert TELLS not in answer.headers


def test_a_retried_transaction_reports_its_reads(wire, simple, pk):
    action = {"Put": {"TableName": simple, "Item": {"pk": {"S": pk}} | text(5_000)}}
    token = {"ClientRequestToken": pk[:36]}
    transact(wire, action, **token)

    answer = transact(wire, action, **token)

    explanation = explained(answer)
    [read] = explanation["Tables"][0]["Reads"]
    assert (read["Read"], read["Blocks"], read["Units"]) == ("Item", 2, 4.0)
    assert units_of_explanation(explanation) == consumed(answer)


def test_a_transaction_of_reads_takes_double_units_of_each_item(wire, simple, composite, pk):
    wire("PutItem", {"TableName": simple, "Item": {"pk": {"S": pk}} | text(4_200)})
    gets = [
        {"Get": {"TableName": simple, "Key": {"pk": {"S": pk}}}},
        {"Get": {"TableName": composite, "Key": {"pk": {"S": pk}, "sk": {"S": "a"}}}},
    ]
    request = {"TransactItems": gets, "ReturnConsumedCapacity": "INDEXES"}

    answer = wire.send("TransactGetItems", request, ASK)

    explanation = explained(answer)
    assert units_of_explanation(explanation) == consumed(answer)
    found, missing = (cost["Reads"][0] for cost in explanation["Tables"])
    assert (found["Blocks"], found["Units"], found["Consistent"]) == (2, 4.0, True)
    assert (missing["Bytes"], missing["Blocks"], missing["Units"]) == (0, 1, 2.0)
    assert found["Rules"] == ["Arithmetic: Read", TRANSACTIONS]
    saved = [(each["Rule"], each["Saves"]) for each in explanation["Cheaper"]]
    assert saved == [(TRANSACTIONS, 2.0), ("Arithmetic: Read", 2.0), (TRANSACTIONS, 1.0)]


def test_statements_in_a_transaction_are_explained(wire, simple, pk):
    insert = f"INSERT INTO \"{simple}\" VALUE {{'pk': '{pk}'}}"
    exists = f"EXISTS(SELECT * FROM \"{simple}\" WHERE pk = '{pk}b' AND v IS MISSING)"
    select = f"SELECT * FROM \"{simple}\" WHERE pk = '{pk}'"

    def sent(*texts: str) -> Answer:
        statements = [{"Statement": each} for each in texts]
        request = {"TransactStatements": statements, "ReturnConsumedCapacity": "TOTAL"}
        return wire.send("ExecuteTransaction", request, ASK)

    written, read, failed = sent(insert), sent(select), sent(insert, exists)

    for answer, units in ((written, 2.0), (read, 2.0), (failed, 4.0)):
        explanation = explained(answer)
        assert explanation["Operation"] == "ExecuteTransaction"
        assert explanation["CapacityUnits"] == units
    assert explained(failed)["Cancelled"] is True
    [cost] = explained(failed)["Tables"]
    assert cost["Writes"][0]["Write"] == "condition failed"


def test_a_long_explanation_of_a_transaction_is_summarized(wire, indexed, pk):
    actions = [
        {"Put": {"TableName": indexed, "Item": extract_key(number, pk) | text(10 * number + 1)}}
        for number in range(1, 101)
    ]
    answer = transact(wire, *actions)
    explanation = explained(answer)
    assert explanation["Summarized"] is True
    assert explanation["CapacityUnits"] == consumed(answer).total
    assert explanation["Tables"][0]["Writes"] == 100

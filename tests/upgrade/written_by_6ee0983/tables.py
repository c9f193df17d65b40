"""The tables, and the writes to each."""

from __future__ import annotations

from typing import Any, Final

from scribe import Item, Scribe, binary, number, text
from serving import START, Serving

from tests.support.clients import WireClient
from tests.support.kafka_server import stream_arn
from tests.support.tables import global_index, local_index
from tests.support.ttl import status, wait_until

FIRST_EXPIRY: Final = START + 600
SECOND_EXPIRY: Final = START + 3_600
END: Final = START + 7_200
LAST_EXPIRY: Final = END + 3_600

IMAGES: Final = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
KEYS_ONLY: Final = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
READINGS: Final = 12

# For each key type: the ends of its order, and values that are difficult to encode.
KEY_VALUES: Final = {
    "S": [text("a"), text("a\u0000b"), text("Zürich"), text("日本")],
    "N": [number(0), number("-12.5"), number("0.000001"), number("9" * 38)],
    "B": [binary(b"\x00"), binary(b"\x00\x01"), binary(b"\x00\xff"), binary(b"\xff\xff")],
}
EVERY_TYPE: Final[Item] = {
    "string": text("text"),
    "number": number("-1.5"),
    "binary": binary(b"\x00\x01"),
    "boolean": {"BOOL": True},
    "null": {"NULL": True},
    "list": {"L": [text("a"), {"L": []}, {"M": {}}]},
    "map": {"M": {"inner": {"M": {"deep": number(1)}}, "empty": text("")}},
    "strings": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2"]},
    "binaries": {"BS": ["AA==", "/w=="]},
}


def write_key_tables(scribe: Scribe) -> None:
    """Tables with keys of every type, and indexes with these keys swapped."""
    for partition, values in KEY_VALUES.items():
        name = f"keys-{partition}"
        scribe.create(name, f"pk:{partition}")
        scribe.put(name, *({"pk": value} | EVERY_TYPE for value in values))
        for sort, sort_values in KEY_VALUES.items():
            name = f"keys-{partition}{sort}"
            scribe.create(
                name,
                f"pk:{partition}",
                f"sk:{sort}",
                "rank:N",
                indexes=(local_index("by_rank", "pk", "rank"),),
                GlobalSecondaryIndexes=[
                    global_index("swapped", "sk", "pk", projection="KEYS_ONLY")
                ],
            )
            scribe.put(
                name,
                *(
                    {"pk": value, "sk": sort_value, "rank": number(10 - rank)}
                    for value in values[:2]
                    for rank, sort_value in enumerate(sort_values)
                ),
            )


def write_orders(scribe: Scribe) -> None:
    """A table with every kind of index, a stream, tags and contributor insights."""
    wire, name = scribe.wire, "Orders"
    scribe.create(
        name,
        "customer:S",
        "order:N",
        "status:S",
        "total:N",
        "code:B",
        indexes=(
            local_index("by_status", "customer", "status"),
            local_index("by_total", "customer", "total", "KEYS_ONLY"),
            local_index("by_code", "customer", "code", "INCLUDE", ("note",)),
        ),
        GlobalSecondaryIndexes=[
            global_index("of_status", "status", "total"),
            global_index("of_code", "code", projection="KEYS_ONLY"),
            global_index("of_total", "total", "customer", projection="INCLUDE", include=("note",)),
        ],
        StreamSpecification=IMAGES,
        Tags=[{"Key": "owner", "Value": "sales"}, {"Key": "stage", "Value": "test"}],
        DeletionProtectionEnabled=True,
    )
    for at in range(24):
        item = {
            **order(at),
            "status": text(("open", "paid", "sent")[at % 3]),
            "total": number(100 - at),
            "note": text(f"note {at}"),
        }
        if at % 2:
            item["code"] = binary(bytes([at, 255 - at]))
        scribe.put(name, item)
    for at in range(0, 24, 4):
        scribe.update(name, order(at), status=text("closed"), total=number(at))
    for at in (1, 6, 23):
        scribe.delete(name, order(at))
    insights = {"TableName": name, "ContributorInsightsAction": "ENABLE"}
    wire("UpdateContributorInsights", insights | {"ContributorInsightsMode": "THROTTLED_KEYS"})
    wire("UpdateContributorInsights", insights | {"IndexName": "of_status"})


def order(at: int) -> Item:
    """The key of an order."""
    return {"customer": text(f"customer-{at % 5}"), "order": number(at)}


def write_accounts(scribe: Scribe) -> None:
    """Changes by a transaction, whose token has expired at the end."""
    name = "Accounts"
    scribe.create(name, "id:S", StreamSpecification=IMAGES)
    scribe.put(name, *({"id": text(each), "balance": number(100)} for each in "abcd"))
    new: Item = {"id": text("e"), "balance": number(5)}
    check = {
        "TableName": name,
        "Key": {"id": text("a")},
        "ConditionExpression": "attribute_exists(balance)",
    }
    request = {
        "ClientRequestToken": "long-ago",
        "TransactItems": [
            {"Put": {"TableName": name, "Item": new}},
            {"Delete": {"TableName": name, "Key": {"id": text("d")}}},
            {"ConditionCheck": check},
        ],
    }
    scribe.wire("TransactWriteItems", request)
    scribe.note(name, {"id": text("e")}, new)
    scribe.note(name, {"id": text("d")}, None)


def write_silent(scribe: Scribe) -> dict[str, Any]:
    """A table with a disabled stream and a new one; returns the records of the first."""
    wire, name = scribe.wire, "Silent"
    scribe.create(name, "id:S", StreamSpecification=IMAGES)
    scribe.put(name, *({"id": text(f"before-{at}")} for at in range(3)))
    arn = wire("DescribeTable", {"TableName": name})["Table"]["LatestStreamArn"]
    wire("UpdateTable", {"TableName": name, "StreamSpecification": {"StreamEnabled": False}})
    first = {"TableName": name, "StreamArn": arn, "changes": scribe.changes.pop(name)}
    scribe.put(name, {"id": text("unseen")})
    wire("UpdateTable", {"TableName": name, "StreamSpecification": KEYS_ONLY})
    scribe.requests[name]["StreamSpecification"] = KEYS_ONLY
    scribe.changes[name] = []
    scribe.put(name, {"id": text("after")})
    scribe.update(name, {"id": text("before-1")}, seen=number(1))
    return first


def write_sessions(scribe: Scribe, serving: Serving) -> None:
    """Tables with time to live; the first expired items are deleted before this returns."""
    names = ("Sessions", "Forgotten")
    expiries = {"first": FIRST_EXPIRY, "second": SECOND_EXPIRY, "last": LAST_EXPIRY}
    for name in names:
        scribe.create(name, "id:S", StreamSpecification=IMAGES)
        switch_expiry(scribe.wire, name, enabled=True)
        wait_until(lambda name=name: status(scribe.wire, name) == "ENABLED")
        scribe.put(name, {"id": text("no-time")}, {"id": text("no-number"), "expires": text("1")})
        for group, expiry in expiries.items():
            scribe.put(name, *(session(f"{group}-{at}", expiry) for at in range(5)))
    serving.clock.set(now=FIRST_EXPIRY + 100)
    for name in names:
        counting = {"TableName": name, "Select": "COUNT"}
        wait_until(lambda counting=counting: scribe.wire("Scan", counting)["Count"] == 12)
        for at in range(5):
            scribe.note(name, {"id": text(f"first-{at}")}, None)


def session(name: str, expires: int) -> Item:
    return {"id": text(name), "expires": number(expires)}


def switch_expiry(wire: WireClient, name: str, *, enabled: bool) -> None:
    specification = {"Enabled": enabled, "AttributeName": "expires"}
    wire("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": specification})


def publish(scribe: Scribe, serving: Serving, name: str) -> None:
    """Create a table whose changes are published, and publish some."""
    scribe.create(name, "id:S")
    destination = {"TableName": name, "StreamArn": stream_arn(name.lower())}
    scribe.wire("EnableKinesisStreamingDestination", destination)
    wait_until(lambda: destination_status(scribe.wire, name) == "ACTIVE")
    write_events(scribe, name, range(20))
    wait_until(lambda: serving.metric("dynactor_destination_lag_records", table=name) == 0)


def write_events(scribe: Scribe, name: str, numbers: range) -> None:
    scribe.put(name, *({"id": text(f"event-{at % 7}"), "n": number(at)} for at in numbers))


def destination_status(wire: WireClient, name: str) -> Any:
    answer = wire("DescribeKinesisStreamingDestination", {"TableName": name})
    return answer["KinesisDataStreamDestinations"][0]["DestinationStatus"]


def write_readings(scribe: Scribe, numbers: range) -> None:
    """Items, each changed once."""
    name = "Readings"
    for at in numbers:
        key = {"sensor": text(f"sensor-{at}"), "at": number(at)}
        scribe.put(name, {**key, "kind": text(f"kind-{at % 3}"), "text": text("some text " * 4)})
        scribe.update(name, key, kind=text(f"kind-{at % 4}"))


def write_books(scribe: Scribe, name: str, count: int, *, is_indexed: bool) -> None:
    """A table with provisioned units, and many small items of few partition keys."""
    units = {"ReadCapacityUnits": 1000, "WriteCapacityUnits": 1000}
    indexes = {"GlobalSecondaryIndexes": [authors(1000)]} if is_indexed else {}
    keys = ("shelf:S", "book:N", *(("author:S",) if is_indexed else ()))
    provisioned = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units}
    scribe.create(name, *keys, **provisioned, **indexes)
    for at in range(count):
        key = {"shelf": text(f"shelf-{at % 4}"), "book": number(at)}
        scribe.put(name, {**key, "author": text(f"author-{at % 10}")})


def authors(units: int) -> dict[str, Any]:
    """A global index of books, with this many units."""
    throughput = {"ReadCapacityUnits": units, "WriteCapacityUnits": units}
    return global_index("of_author", "author", "book", ProvisionedThroughput=throughput)

"""Enable, Disable, Describe and UpdateKinesisStreamingDestination, with and without a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.clients.clients import WireClient, boto3_client
from tests.support.servers.server import running_server
from tests.support.tables.tables import table, unique_name

pytestmark = pytest.mark.ours_alone("topics of Kafka stand in the place of Kinesis streams")

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/"


@pytest.fixture(scope="module")
def kafka_wire() -> Iterator[WireClient]:
    """A server whose broker does not exist, because port 1 has no listener."""
    with (
        running_server("--kafka-bootstrap-servers", "127.0.0.1:1", "--copy-messages") as server,
        closing(WireClient(server.endpoint)) as client,
    ):
        yield client


@pytest.fixture
def published(kafka_wire: WireClient) -> Iterator[str]:
    with table(kafka_wire, "pk:S") as name:
        yield name


def destinations(call: WireClient, name: str) -> list[dict[str, Any]]:
    answer = call("DescribeKinesisStreamingDestination", {"TableName": name})
    assert answer["TableName"] == name
    found: list[dict[str, Any]] = answer["KinesisDataStreamDestinations"]
    return found


def enable(call: WireClient, name: str, topic: str, **members: Any) -> dict[str, Any]:
    request = {"TableName": name, "StreamArn": ARN + topic, **members}
    return call("EnableKinesisStreamingDestination", request)


def wait_disabled(call: WireClient, name: str) -> dict[str, Any]:
    while (described := destinations(call, name)[-1])["DestinationStatus"] != "DISABLED":
        pass
    return described


def test_a_table_without_a_destination_has_none_to_describe(kafka_wire: WireClient, published: str):
    assert destinations(kafka_wire, published) == []


def test_a_destination_is_enabling_until_the_broker_is_reachable(
    kafka_wire: WireClient, published: str
):
    assert enable(kafka_wire, published, "threads") == {
        "TableName": published,
        "StreamArn": ARN + "threads",
        "DestinationStatus": "ENABLING",
        "EnableKinesisStreamingConfiguration": {
            "ApproximateCreationDateTimePrecision": "MILLISECOND"
        },
    }
    while "DestinationStatusDescription" not in (found := destinations(kafka_wire, published))[0]:
        pass
    # The description says why the destination is not ACTIVE.
    assert found[0].pop("DestinationStatusDescription").startswith("127.0.0.1:1: ")
    assert found == [
        {
            "StreamArn": ARN + "threads",
            "DestinationStatus": "ENABLING",
            "ApproximateCreationDateTimePrecision": "MILLISECOND",
        }
    ]
    kafka_wire("PutItem", {"TableName": published, "Item": {"pk": {"S": "a"}}})


def test_a_table_has_one_destination_at_a_time(kafka_wire: WireClient, published: str):
    enable(kafka_wire, published, "threads")
    for topic in ("threads", "others"):
        request = {"TableName": published, "StreamArn": ARN + topic}
        assert kafka_wire.refused("EnableKinesisStreamingDestination", request) == (
            "ValidationException",
            (
                "Table is not in a valid state to enable Kinesis Streaming Destination:"
                "EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform "
                "ENABLE operation."
            ),
        )


def test_a_disabled_destination_is_listed_until_it_is_enabled_again(
    kafka_wire: WireClient, published: str
):
    configuration = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    enable(kafka_wire, published, "threads", EnableKinesisStreamingConfiguration=configuration)
    request = {"TableName": published, "StreamArn": ARN + "threads"}
    assert kafka_wire("DisableKinesisStreamingDestination", request) == {
        **request,
        "DestinationStatus": "DISABLING",
    }
    described = wait_disabled(kafka_wire, published)
    assert described["ApproximateCreationDateTimePrecision"] == "MICROSECOND"
    enable(kafka_wire, published, "others")
    statuses = [found["DestinationStatus"] for found in destinations(kafka_wire, published)]
    assert statuses == ["DISABLED", "ENABLING"]


@pytest.mark.parametrize("topic", ["threads", "others"])
def test_a_destination_that_is_not_enabled_cannot_be_disabled(
    kafka_wire: WireClient, published: str, topic: str
):
    if topic == "others":
        enable(kafka_wire, published, "threads")
    request = {"TableName": published, "StreamArn": ARN + topic}
    assert kafka_wire.refused("DisableKinesisStreamingDestination", request) == (
        "ValidationException",
        (
            "Table is not in a valid state to disable Kinesis Streaming Destination:"
            "DisableKinesisStreamingDestination must be ACTIVE to perform DISABLE operation."
        ),
    )


def test_the_precision_of_times_can_be_changed(kafka_wire: WireClient, published: str):
    enable(kafka_wire, published, "threads")
    configuration = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    request = {
        "TableName": published,
        "StreamArn": ARN + "threads",
        "UpdateKinesisStreamingConfiguration": configuration,
    }
    assert kafka_wire("UpdateKinesisStreamingDestination", request) == {
        **request,
        "DestinationStatus": "UPDATING",
    }
    (described,) = destinations(kafka_wire, published)
    assert described["ApproximateCreationDateTimePrecision"] == "MICROSECOND"
    refusal = kafka_wire.refused("UpdateKinesisStreamingDestination", request)
    assert refusal.type == "ValidationException"
    assert refusal.message is not None
    assert refusal.message.startswith(
        "Invalid Request: Precision is already set to the desired value of MICROSECOND for tableId"
    )


@pytest.mark.parametrize("configuration", [{}, {"UpdateKinesisStreamingConfiguration": {}}])
def test_an_update_must_change_something(
    kafka_wire: WireClient, published: str, configuration: dict[str, Any]
):
    enable(kafka_wire, published, "threads")
    request = {"TableName": published, "StreamArn": ARN + "threads", **configuration}
    assert kafka_wire.refused("UpdateKinesisStreamingDestination", request) == (
        "ValidationException",
        (
            "Streaming destination cannot be updated with given parameters: "
            "UpdateKinesisStreamingConfiguration cannot be null or contain only null values"
        ),
    )


@pytest.mark.parametrize(
    "topic", ["a/b", "..", "x" * 250, "__consumer_offsets", "dynactor.__positions", "blank in it"]
)
def test_an_invalid_topic_is_refused(kafka_wire: WireClient, published: str, topic: str):
    request = {"TableName": published, "StreamArn": ARN + topic}
    refusal = kafka_wire.refused("EnableKinesisStreamingDestination", request)
    assert refusal.type == "ValidationException"
    assert refusal.message is not None
    assert refusal.message.startswith("Invalid StreamArn")


def test_an_invalid_stream_arn_is_refused(kafka_wire: WireClient, published: str):
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/Thread"
    request = {"TableName": published, "StreamArn": arn}
    refusal = kafka_wire.refused("EnableKinesisStreamingDestination", request)
    assert refusal.type == "ValidationException"


@pytest.mark.parametrize("operation", ["Enable", "Disable", "Describe", "Update"])
def test_a_table_that_is_missing_has_no_destinations(kafka_wire: WireClient, operation: str):
    name = unique_name()
    request: dict[str, Any] = {"TableName": name}
    if operation != "Describe":
        request["StreamArn"] = ARN + "threads"
    if operation == "Update":
        configuration = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
        request["UpdateKinesisStreamingConfiguration"] = configuration
    assert kafka_wire.refused(f"{operation}KinesisStreamingDestination", request) == (
        "ResourceNotFoundException",
        f"Requested resource not found: Table: {name} not found",
    )


def test_a_table_with_a_destination_can_be_deleted_and_recreated(
    kafka_wire: WireClient,
):
    name = unique_name()
    with table(kafka_wire, "pk:S", name=name):
        enable(kafka_wire, name, "threads")
    with table(kafka_wire, "pk:S", name=name):
        assert destinations(kafka_wire, name) == []


def test_the_answers_have_the_shapes_of_boto3s_service_model(
    kafka_wire: WireClient, published: str
):
    endpoint = f"http://{kafka_wire.host}:{kafka_wire.port}"
    with closing(boto3_client(endpoint)) as client:
        named = {"TableName": published, "StreamArn": ARN + "threads"}
        assert client.enable_kinesis_streaming_destination(**named)["DestinationStatus"] == (
            "ENABLING"
        )
        described = client.describe_kinesis_streaming_destination(TableName=published)
        assert described["KinesisDataStreamDestinations"][0]["StreamArn"] == ARN + "threads"
        assert client.disable_kinesis_streaming_destination(**named)["DestinationStatus"] == (
            "DISABLING"
        )


def test_without_kafka_no_destination_can_be_enabled(wire: WireClient, simple: str):
    request = {"TableName": simple, "StreamArn": ARN + "threads"}
    assert wire.refused("EnableKinesisStreamingDestination", request) == (
        "ValidationException",
        "Changes can't be published: the server was started without --kafka-bootstrap-servers",
    )
    assert destinations(wire, simple) == []

"""The definition of a table's copy: the request that creates it, and checks of an existing one."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from dynactor.api.clients.client import Endpoint, RequestFailed
from dynactor.api.commands.tables.transfer_failed import TransferFailed

# A table as DescribeTable shows it.
Description: TypeAlias = dict[str, Any]

# The tag of a copy while a mirror writes to it: the id of the mirror's source.
MIRROR_TAG: Final = "dynactor:mirror-of"
# Errors of an endpoint that does not have an operation, or does not allow it.
UNREADABLE: Final = frozenset({"UnknownOperationException", "AccessDeniedException"})
# Prefix of tags that only AWS may set.
_AWS_TAG_PREFIX: Final = "aws:"
_ON_DEMAND: Final = "PAY_PER_REQUEST"
_UNITS: Final = ("ReadCapacityUnits", "WriteCapacityUnits")


def table_id(description: Description) -> str:
    """Identify a table: tables that are created again have another id."""
    return str(description.get("TableId") or description["TableArn"])


def creation_request(source: Description, name: str, tags: list[dict[str, str]]) -> dict[str, Any]:
    """The CreateTable request of a copy: keys, indexes, capacity, class and tags, no stream."""
    is_on_demand = source.get("BillingModeSummary", {}).get("BillingMode") == _ON_DEMAND
    request: dict[str, Any] = {
        "TableName": name,
        "AttributeDefinitions": source["AttributeDefinitions"],
        "KeySchema": source["KeySchema"],
        "BillingMode": _ON_DEMAND if is_on_demand else "PROVISIONED",
    }
    if not is_on_demand:
        request["ProvisionedThroughput"] = _throughput(source)
    elif "OnDemandThroughput" in source:
        request["OnDemandThroughput"] = source["OnDemandThroughput"]
    if "TableClassSummary" in source:
        request["TableClass"] = source["TableClassSummary"]["TableClass"]
    local_indexes = [_index(index) for index in source.get("LocalSecondaryIndexes", ())]
    global_indexes = [
        _index(index)
        | ({} if is_on_demand else {"ProvisionedThroughput": _throughput(index)})
        | (
            {"OnDemandThroughput": index["OnDemandThroughput"]}
            if is_on_demand and "OnDemandThroughput" in index
            else {}
        )
        for index in source.get("GlobalSecondaryIndexes", ())
        if index.get("IndexStatus") != "DELETING"
    ]
    if local_indexes:
        request["LocalSecondaryIndexes"] = local_indexes
    if global_indexes:
        request["GlobalSecondaryIndexes"] = global_indexes
    kept = [
        tag
        for tag in tags
        if not tag["Key"].startswith(_AWS_TAG_PREFIX) and tag["Key"] != MIRROR_TAG
    ]
    if kept:
        request["Tags"] = kept
    return request


def _index(index: dict[str, Any]) -> dict[str, Any]:
    return {name: index[name] for name in ("IndexName", "KeySchema", "Projection")}


def _throughput(described: dict[str, Any]) -> dict[str, int]:
    return {name: described["ProvisionedThroughput"][name] for name in _UNITS}


def key_types(description: Description) -> list[tuple[str, str, str]]:
    """The key of a table: each attribute's name, role and type."""
    types = {
        attribute["AttributeName"]: attribute["AttributeType"]
        for attribute in description["AttributeDefinitions"]
    }
    return [
        (element["AttributeName"], element["KeyType"], types[element["AttributeName"]])
        for element in description["KeySchema"]
    ]


async def describe(endpoint: Endpoint, table_name: str) -> Description | None:
    """A table's description; None if there is no such table."""
    try:
        answer = await endpoint.call("DescribeTable", {"TableName": table_name})
    except RequestFailed as error:
        if error.error_type == "ResourceNotFoundException":
            return None
        raise
    description: Description = answer["Table"]
    return description


async def time_to_live_attribute(endpoint: Endpoint, table_name: str) -> str | None:
    """The attribute with the expiry times of a table; None without time to live."""
    answer = await endpoint.call("DescribeTimeToLive", {"TableName": table_name})
    found = answer["TimeToLiveDescription"]
    if found["TimeToLiveStatus"] not in ("ENABLED", "ENABLING"):
        return None
    return str(found["AttributeName"])


async def enable_time_to_live(endpoint: Endpoint, table_name: str, attribute: str) -> None:
    """Let a table delete the items whose time in an attribute has passed."""
    specification = {"Enabled": True, "AttributeName": attribute}
    await endpoint.call(
        "UpdateTimeToLive", {"TableName": table_name, "TimeToLiveSpecification": specification}
    )


async def tags(endpoint: Endpoint, table_arn: str) -> list[dict[str, str]] | None:
    """The tags of a table; None if the endpoint has no tags, such as DynamoDB Local."""
    found: list[dict[str, str]] = []
    request: dict[str, Any] = {"ResourceArn": table_arn}
    while True:
        try:
            answer = await endpoint.call("ListTagsOfResource", request)
        except RequestFailed as error:
            if error.error_type in UNREADABLE:
                return None
            raise
        found += answer.get("Tags", ())
        if not answer.get("NextToken"):
            return found
        request["NextToken"] = answer["NextToken"]


def check_same_key(source: Description, target: Description) -> None:
    """Refuse a copy whose key differs from its source's key; raises ``TransferFailed``."""
    if key_types(source) != key_types(target):
        raise TransferFailed(
            f"The tables have different keys: {key_types(source)} and {key_types(target)}"
        )

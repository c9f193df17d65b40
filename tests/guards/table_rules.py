"""Rules for definitions of tables and indexes: keys, capacity, streams, tags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dynactor.model.limits import (
    GLOBAL_INDEXES,
    LOCAL_INDEXES,
    PROJECTED_ATTRIBUTES,
    RESOURCE_POLICY_BYTES,
)
from tests.guards.rules import Broken, Reason, Rule, named
from tests.guards.sites import Request, Site
from tests.guards.valid_requests import EMPTY_TABLE, TABLE, TABLE_ARN
from tests.support.tables.tables import definition, global_index, key_schema, local_index

_UNITS: Final = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
_TOO_MANY: Final = {"ReadCapacityUnits": 10**13, "WriteCapacityUnits": 1}
_OVER_A_TABLE: Final = {"ReadCapacityUnits": 10**9, "WriteCapacityUnits": 1}
_CREATE: Final = global_index("by-g", "g")
_DEFINED: Final = [{"AttributeName": "g", "AttributeType": "S"}]


def _create(name: str, message: str, member: str, **members: Any) -> Rule:
    """A rule that a CreateTable with these members breaks."""

    def broken(site: Site, _member: str) -> Broken:
        if "KeySchema" not in site.members:
            return Reason.NO_NEW_TABLE
        request = definition("pk:S", "sk:S", name=TABLE)
        request.update(members)
        return {"": lambda: {name: value for name, value in request.items() if value is not None}}

    return Rule(f"new tables: {name}", message, named(member), broken)


def _change(name: str, message: str, member: str, **members: Any) -> Rule:
    """A rule that an UpdateTable with these members breaks."""

    def broken(site: Site, _member: str) -> Broken:
        if "GlobalTable" in site.operation or "Replica" in site.operation:
            return Reason.NO_REPLICAS
        if site.operation != "UpdateTable":
            return Reason.MAKES_TABLE
        return {"": lambda: {"TableName": EMPTY_TABLE, **members}}

    return Rule(f"changed tables: {name}", message, named(member), broken)


def _export(name: str, message: str, member: str, **members: Any) -> Rule:
    """A rule that an export with these members breaks."""

    def broken(_site: Site, _member: str) -> Broken:
        return {"": lambda: {"TableArn": TABLE_ARN, "S3Bucket": "a-bucket", **members}}

    return Rule(f"exports: {name}", message, named(member), broken)


def _definitions(*names: str) -> list[Request]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


def _index_change(action: str, **members: Any) -> list[Request]:
    return [{action: {"IndexName": "by-g", **members}}]


_KEYS: Final = _definitions("pk", "sk")

# The maximum number of projected attributes of one index, by the service model.
_MOST_INCLUDED: Final = 20


def _including(index: Request, *names: str) -> Request:
    projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(names)}
    return {**index, "Projection": projection}


def _index_rules(member: str, index: Request, most: int) -> Iterator[Rule]:
    """Rules for a new table's indexes of either kind."""

    def rule(name: str, message: str, indexes: list[Request], *attributes: str) -> Rule:
        definitions = _definitions("pk", "sk", *attributes)
        members = {member: indexes, "AttributeDefinitions": definitions}
        return _create(f"{member}: {name}", message, member, **members)

    projecting_all = {"ProjectionType": "ALL", "NonKeyAttributes": ["y"]}
    yield rule("some", "is empty", [])
    yield rule("names once", "[Dd]uplicate", [index, index], "x")
    numbered = [{**index, "IndexName": f"by-x{number}"} for number in range(most + 1)]
    yield rule("the number", "per-table limit", numbered, "x")
    yield rule("a projection", "ProjectionType", [{**index, "Projection": {}}], "x")
    including = {**index, "Projection": {"ProjectionType": "INCLUDE"}}
    yield rule("names to include", "NonKeyAttributes", [including], "x")
    everything = {**index, "Projection": projecting_all}
    yield rule("nothing else to include", "NonKeyAttributes", [everything], "x")
    yield rule("defined keys", "not defined|no definition", [index])
    yield rule("included names once", "[Dd]uplicate", [_including(index, "y", "y")], "x")


_INCREMENTAL: Final[Request] = {
    "ExportType": "INCREMENTAL_EXPORT",
    "IncrementalExportSpecification": {"ExportFromTime": 1},
}
_FILTER: Final[Request] = {"FilterExpression": "attribute_exists(#a)"}

TABLE_RULES: Final = (
    _create(
        "settings that are supported",
        "not supported",
        "GlobalTableSettingsReplicationMode",
        GlobalTableSettingsReplicationMode="ENABLED",
    ),
    _create(
        "known elements of a policy",
        "Unknown",
        "ResourcePolicy",
        ResourcePolicy='{"Version": "2012-10-17", "Statement": [], "Unknown": 1}',
    ),
    _export(
        "a period",
        "if and only if",
        "IncrementalExportSpecification",
        ExportType="INCREMENTAL_EXPORT",
    ),
    _export(
        "placeholders of a filter",
        "invalid key: Syntax error",
        "FilterSpecification",
        FilterSpecification={**_FILTER, "ExpressionAttributeNames": {"#a": "v", "b": "w"}},
    ),
    _create(
        "defined keys",
        "have no definition|not defined",
        "KeySchema",
        KeySchema=key_schema("pk", "x"),
    ),
    _create(
        "used definitions",
        "are not used|does not exactly match",
        "AttributeDefinitions",
        AttributeDefinitions=_definitions("pk", "sk", "x"),
    ),
    _create(
        "definitions once",
        "duplicated|Duplicate",
        "AttributeDefinitions",
        AttributeDefinitions=[*_KEYS, *_definitions("sk")],
    ),
    _create("two key attributes", "same name", "KeySchema", KeySchema=key_schema("pk", "pk")),
    _create(
        "a hash key first",
        "not a HASH key type",
        "KeySchema",
        KeySchema=key_schema("pk", "sk")[::-1],
    ),
    _create(
        "units",
        "ReadCapacityUnits and WriteCapacityUnits|must be specified",
        "BillingMode",
        BillingMode="PROVISIONED",
    ),
    _create(
        "no units on demand",
        "ProvisionedThroughput cannot be",
        "ProvisionedThroughput",
        ProvisionedThroughput=_UNITS,
    ),
    _create(
        "most units",
        "out of bounds",
        "ProvisionedThroughput",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_TOO_MANY,
    ),
    _create(
        "most units of a table",
        "above the per table maximum",
        "ProvisionedThroughput",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_OVER_A_TABLE,
    ),
    _create(
        "on-demand limits on demand",
        "cannot be specified when table",
        "OnDemandThroughput",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
        OnDemandThroughput={"MaxReadRequestUnits": 1},
    ),
    _create(
        "on-demand limits",
        "is outside of valid range",
        "OnDemandThroughput",
        OnDemandThroughput={"MaxReadRequestUnits": 0},
    ),
    _create(
        "least warmth",
        "is lower than initial throughput",
        "WarmThroughput",
        WarmThroughput={"ReadUnitsPerSecond": 1},
    ),
    _create(
        "an encryption",
        "SSEType AES256",
        "SSESpecification",
        SSESpecification={"Enabled": True, "SSEType": "AES256"},
    ),
    _create(
        "a view of a stream",
        "UpdateViewType is required",
        "StreamSpecification",
        StreamSpecification={"StreamEnabled": True},
    ),
    _create(
        "no view without a stream",
        "should not be specified",
        "StreamSpecification",
        StreamSpecification={"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"},
    ),
    _create("tags once", "[Dd]uplicate", "Tags", Tags=[{"Key": "a", "Value": "b"}] * 2),
    _create("characters of tags", "not allowed", "Tags", Tags=[{"Key": "a*", "Value": "b"}]),
    _create("no system tags", "are reserved", "Tags", Tags=[{"Key": "aws:a", "Value": "b"}]),
    *_index_rules("LocalSecondaryIndexes", local_index("by-x", "pk", "x"), LOCAL_INDEXES),
    *_index_rules("GlobalSecondaryIndexes", global_index("by-x", "x"), GLOBAL_INDEXES),
    _create(
        "projected attributes of all indexes",
        "Number of projected attributes",
        "GlobalSecondaryIndexes",
        GlobalSecondaryIndexes=[
            _including(
                global_index(f"by-x{index}", "x"),
                *(f"a{index}-{number}" for number in range(_MOST_INCLUDED)),
            )
            for index in range(PROJECTED_ATTRIBUTES // _MOST_INCLUDED + 1)
        ],
        AttributeDefinitions=_definitions("pk", "sk", "x"),
    ),
    _create(
        "the hash key of local indexes",
        "same leading hash key",
        "LocalSecondaryIndexes",
        LocalSecondaryIndexes=[local_index("by-x", "x", "sk")],
        AttributeDefinitions=_definitions("pk", "sk", "x"),
    ),
    _create(
        "no units of indexes on demand",
        "should not be specified for index",
        "GlobalSecondaryIndexes",
        GlobalSecondaryIndexes=[{**_CREATE, "ProvisionedThroughput": _UNITS}],
        AttributeDefinitions=_definitions("pk", "sk", "g"),
    ),
    _create(
        "units of indexes",
        "is not specified for index",
        "GlobalSecondaryIndexes",
        GlobalSecondaryIndexes=[_CREATE],
        AttributeDefinitions=_definitions("pk", "sk", "g"),
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
    ),
    _create(
        "most units of indexes",
        "out of bounds for index",
        "GlobalSecondaryIndexes",
        GlobalSecondaryIndexes=[{**_CREATE, "ProvisionedThroughput": _TOO_MANY}],
        AttributeDefinitions=_definitions("pk", "sk", "g"),
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
    ),
    _create(
        "most units of an index",
        "above the per table maximum",
        "GlobalSecondaryIndexes",
        GlobalSecondaryIndexes=[{**_CREATE, "ProvisionedThroughput": _OVER_A_TABLE}],
        AttributeDefinitions=_definitions("pk", "sk", "g"),
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
    ),
    _create(
        "size of a policy",
        "Maximum policy size",
        "ResourcePolicy",
        ResourcePolicy="x" * (RESOURCE_POLICY_BYTES + 1),
    ),
    _create(
        "a policy with statements", "Invalid policy document", "ResourcePolicy", ResourcePolicy="{}"
    ),
    _change("something", "At least one of", "ReplicaUpdates"),
    _change(
        "units with the mode",
        "ProvisionedThroughput must be|must be specified",
        "BillingMode",
        BillingMode="PROVISIONED",
    ),
    _change(
        "no units on demand",
        "Neither ReadCapacityUnits",
        "ProvisionedThroughput",
        ProvisionedThroughput=_UNITS,
    ),
    _change(
        "no units with the mode",
        "ProvisionedThroughput cannot be",
        "ProvisionedThroughput",
        BillingMode="PAY_PER_REQUEST",
        ProvisionedThroughput=_UNITS,
    ),
    _change(
        "most units",
        "out of bounds",
        "ProvisionedThroughput",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_TOO_MANY,
    ),
    _change(
        "one action",
        "must not be null",
        "GlobalSecondaryIndexUpdates",
        GlobalSecondaryIndexUpdates=[{}],
    ),
    _change(
        "one action alone",
        "Only one of",
        "GlobalSecondaryIndexUpdates",
        GlobalSecondaryIndexUpdates=[{"Create": _CREATE, "Delete": {"IndexName": "by-g"}}],
        AttributeDefinitions=_DEFINED,
    ),
    _change(
        "indexes once",
        "Only one global secondary index update per index",
        "GlobalSecondaryIndexUpdates",
        GlobalSecondaryIndexUpdates=[*_index_change("Delete"), *_index_change("Delete")],
    ),
    _change(
        "one index at a time",
        "Only 1 online index",
        "GlobalSecondaryIndexUpdates",
        GlobalSecondaryIndexUpdates=[
            {"Create": _CREATE},
            {"Create": {**_CREATE, "IndexName": "by-g2"}},
        ],
        AttributeDefinitions=_DEFINED,
    ),
    _change(
        "indexes that are there",
        "not found|ResourceNotFound",
        "GlobalSecondaryIndexUpdates",
        GlobalSecondaryIndexUpdates=_index_change("Delete"),
    ),
    _change(
        "units of indexes that are there",
        "ResourceNotFoundException",
        "GlobalSecondaryIndexUpdates",
        GlobalSecondaryIndexUpdates=_index_change("Update", ProvisionedThroughput=_UNITS),
    ),
    _change(
        "most units of an index",
        "should not be specified for index",
        "GlobalSecondaryIndexUpdates",
        GlobalSecondaryIndexUpdates=[{"Create": {**_CREATE, "ProvisionedThroughput": _TOO_MANY}}],
        AttributeDefinitions=_DEFINED,
    ),
    _change(
        "definitions once",
        "duplicated|Duplicate",
        "AttributeDefinitions",
        GlobalSecondaryIndexUpdates=[{"Create": _CREATE}],
        AttributeDefinitions=_DEFINED * 2,
    ),
    _change(
        "definitions for an index",
        "AttributeDefinitions",
        "GlobalSecondaryIndexUpdates",
        GlobalSecondaryIndexUpdates=[{"Create": _CREATE}],
    ),
    _change(
        "an index apart from a stream",
        "cannot create or delete index",
        "StreamSpecification",
        GlobalSecondaryIndexUpdates=[{"Create": _CREATE}],
        AttributeDefinitions=_DEFINED,
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
    ),
    _change(
        "an index apart from units",
        "cannot create or delete index",
        "ProvisionedThroughput",
        GlobalSecondaryIndexUpdates=[{"Create": _CREATE}],
        AttributeDefinitions=_DEFINED,
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
    ),
    _change(
        "a class alone",
        "must be the only operation",
        "TableClass",
        TableClass="STANDARD_INFREQUENT_ACCESS",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
    ),
    _change(
        "a protection alone",
        "must be the only operation",
        "DeletionProtectionEnabled",
        GlobalSecondaryIndexUpdates=[{"Create": _CREATE}],
        AttributeDefinitions=_DEFINED,
        DeletionProtectionEnabled=True,
    ),
    _change(
        "nothing that is not built",
        "not supported yet",
        "ReplicaUpdates",
        ReplicaUpdates=[{"Create": {"RegionName": "eu-west-1"}}],
    ),
    _change(
        "a view of a stream",
        "UpdateViewType is required",
        "StreamSpecification",
        StreamSpecification={"StreamEnabled": True},
    ),
    _change(
        "a stream that is off",
        "Table has no stream",
        "StreamSpecification",
        StreamSpecification={"StreamEnabled": False},
    ),
)

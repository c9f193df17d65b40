"""The facts behind advice on a table, gathered from both listeners of a server."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from dynactor.api.admin_api.access_messages import ACCESS_PATH, AccessAnswer
from dynactor.api.admin_api.insights_messages import (
    INSIGHTS_PATH,
    SAMPLE_PATH,
    USE_PATH,
    BusyKey,
    InsightsAnswer,
    SampleAnswer,
    UseAnswer,
)
from dynactor.api.advice.traffic import Access, Factors, Traffic
from dynactor.api.clients.admin_client import AdminClient
from dynactor.api.clients.client import Endpoint
from dynactor.model.capacity import item_read_units, write_units
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values.item import Item


class Wanted(Protocol):
    """The options that select the facts."""

    @property
    def table(self) -> str: ...  # noqa: D102 - the option's text says it
    @property
    def index_key(self) -> str | None: ...  # noqa: D102
    @property
    def sample_items(self) -> int: ...  # noqa: D102


class AdviceFacts(Struct, frozen=True):
    """The facts about a table and the server's policies; ``sample`` has some items of the table."""

    description: dict[str, Any]
    use: UseAnswer
    traffic: Traffic
    index_traffic: dict[str, Traffic]
    sample: list[Item]
    access: AccessAnswer = AccessAnswer()

    @property
    def key_schema(self) -> KeySchema:
        """The table's key."""
        return resource_key_schema(self.description, self.description)

    @property
    def average_item_bytes(self) -> int:
        """The mean size of the table's items; 0 if it has none."""
        return mean_item_bytes(self.description["ItemCount"], self.description["TableSizeBytes"])

    @property
    def is_provisioned(self) -> bool:
        """Whether the table has provisioned throughput."""
        return bool(self.description["ProvisionedThroughput"]["WriteCapacityUnits"])

    @property
    def recorded_seconds(self) -> float:
        """Seconds for which requests were counted."""
        return self.use.now - self.use.since

    def asked(self, kind: Access, item_bytes: int | None = None) -> Factors:
        """The units that clients requested, by default for items of the table's mean size."""
        size_bytes = self.average_item_bytes if item_bytes is None else item_bytes
        return requested_units(kind, self.use.throttling, size_bytes)

    def held_by(self, key: Item) -> BusyKey | None:
        """The size of a partition key's items. The server measures only the busiest keys."""
        return next((each for each in self.use.busy_keys if each.key == key), None)


def mean_item_bytes(item_count: int, size_bytes: int) -> int:
    """The mean size of a table's items, rounded up; 0 if it has none."""
    return -(-size_bytes // item_count) if item_count else 0


def requested_units(kind: Access, throttling: str, item_bytes: int) -> Factors:
    """For each kind of count, the units per count that clients requested.

    A throttled request has consumed nothing, so it counts as the units of an item of this size. If
    limits are only observed, every request has consumed its units. Retries count as requests.
    """
    if throttling != "enforce":
        return {kind: 1.0}
    if kind == "writes":
        return {kind: 1.0, "throttled_writes": float(write_units(item_bytes))}
    return {kind: 1.0, "throttled_reads": item_read_units(item_bytes, consistent=False)}


def resource_key_schema(description: dict[str, Any], resource: dict[str, Any]) -> KeySchema:
    """The key of a table, or of an index, from its description."""
    types = {
        attribute["AttributeName"]: attribute["AttributeType"]
        for attribute in description["AttributeDefinitions"]
    }

    def part(role: str) -> tuple[KeyAttribute, ...]:
        return tuple(
            KeyAttribute(element["AttributeName"], types[element["AttributeName"]])
            for element in resource["KeySchema"]
            if element["KeyType"] == role
        )

    return KeySchema(part("HASH"), part("RANGE"))


async def gather(admin: AdminClient, client: Endpoint, wanted: Wanted) -> AdviceFacts:
    """Request all facts; raises as ``Endpoint.call``, or ``AdminRequestFailed``."""
    description = (await client.call("DescribeTable", {"TableName": wanted.table}))["Table"]
    names = [index["IndexName"] for index in description.get("GlobalSecondaryIndexes", ())]

    def traffic(index: dict[str, str]) -> Traffic:
        parameters = {"table": wanted.table, **index}
        return Traffic(admin.ask("GET", INSIGHTS_PATH, InsightsAnswer, parameters=parameters))

    asked = {"table": wanted.table}
    if wanted.index_key is not None:
        asked["attribute"] = wanted.index_key
    use = admin.ask("GET", USE_PATH, UseAnswer, parameters=asked)
    sample: list[Item] = []
    if wanted.sample_items:
        parameters = {"table": wanted.table, "count": str(wanted.sample_items)}
        answer = admin.ask("GET", SAMPLE_PATH, SampleAnswer, parameters=parameters)
        sample = answer.items
    return AdviceFacts(
        description,
        use,
        traffic({}),
        {name: traffic({"index": name}) for name in names},
        sample,
        admin.ask("GET", ACCESS_PATH, AccessAnswer, if_missing=AccessAnswer()),
    )

"""The violation detector: finds the values in a table that can't be keys of an index (S188, S190).

A new index has no entries for items with such values, and DynamoDB refuses later writes of such
values.
Source: "Detecting and correcting index key violations".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from dynactor.api.clients.client import Endpoint, RequestFailed
from dynactor.api.clients.unit_rate import wait_after
from dynactor.model.definitions.index import KeyViolation, key_violation, part_size_bytes
from dynactor.model.errors import DynamoDBError
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import PARTITION_KEY_BYTES, SORT_KEY_BYTES
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.model.values import attribute_value, number
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item

Reason: TypeAlias = KeyViolation | Literal["too long together"]

REMOVED: Final = "removed"
REWRITTEN: Final = "rewritten"
_CHANGED: Final = "not corrected: the value has changed meanwhile"
_IN_TABLE_KEY: Final = "not corrected: the attribute is part of the item's primary key"
_NO_VALUE: Final = "not corrected: there is no new value"


class Target(Struct, frozen=True):
    """A table, and the key of an index that the table has or may get.

    ``read_units`` and ``write_units`` are the table's units per second.
    """

    table_name: str
    table_key: tuple[str, ...]
    index_key: KeySchema
    item_count: int
    read_units: int = 0
    write_units: int = 0


class ItemViolation(Struct, frozen=True):
    """A value that can't be an attribute of the index's key, with the key of the value's item.

    ``outcome`` is the outcome of the correction; empty without one.
    """

    key: Item
    attribute: KeyAttribute
    value: AttributeValue
    reason: Reason
    outcome: str = ""

    @property
    def corrected(self) -> bool:
        """Whether the violation was corrected."""
        return self.outcome in (REMOVED, REWRITTEN)


class ScannedPage(Struct, frozen=True):
    """The violations and counts of one page of the table."""

    items: int
    violations: list[list[ItemViolation]]  # of one item each


class Fix(Protocol):
    """A way to correct violations."""

    def new_value(self, violation: ItemViolation) -> AttributeValue | None:
        """The new value; ``{}`` to remove the attribute, None to keep the old value."""


class DeleteAttribute:
    """Remove the attribute from its item."""

    def new_value(self, violation: ItemViolation) -> AttributeValue | None:  # noqa: ARG002 - as Fix
        """Remove the attribute."""
        return {}


class Rewrite(Struct, frozen=True):
    """Set attributes to the given values, by attribute name."""

    values: Mapping[str, AttributeValue]

    def new_value(self, violation: ItemViolation) -> AttributeValue | None:
        """Return the given value of the attribute."""
        return self.values.get(violation.attribute.name)


class Convert:
    """Convert numbers to strings, and strings that are numbers to numbers."""

    def new_value(self, violation: ItemViolation) -> AttributeValue | None:
        """Return the value in the index's type, if possible."""
        match violation.attribute.type, violation.value:
            case "S", {"N": str(text)}:
                return {"S": text}
            case "N", {"S": str(text)}:
                try:
                    return {"N": number.canonical(text.strip())}
                except DynamoDBError:
                    return None
        return None


class Allowance:
    """The number of items that may still be read. None: no limit."""

    def __init__(self, items: int | None) -> None:
        self._left = items

    @property
    def is_spent(self) -> bool:
        """Whether no more items may be read."""
        return self._left == 0

    def take(self) -> int | None:
        """Take the number of items for the next page; None for any number."""
        if self._left is None:
            return None
        taken, self._left = self._left, 0
        return taken

    def give_back(self, items: int) -> None:
        """Return the unused part of a taken number."""
        if self._left is not None:
            self._left += items


async def pages(
    client: Endpoint,
    target: Target,
    segment: int,
    segments: int,
    *,
    allowance: Allowance,
    rate: SteadyRate | None,
) -> AsyncIterator[ScannedPage]:
    """Read one segment by pages, until its end or the allowance's; raises as ``Endpoint.call``."""
    wanted = dict.fromkeys(
        (*target.table_key, *(attribute.name for attribute in target.index_key.attributes))
    )
    names = {f"#{at}": name for at, name in enumerate(wanted)}
    request: dict[str, Any] = {
        "TableName": target.table_name,
        "Segment": segment,
        "TotalSegments": segments,
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
    }
    if rate is not None:
        request["ReturnConsumedCapacity"] = "TOTAL"
    while not allowance.is_spent:
        taken = allowance.take()
        if taken is not None:
            request["Limit"] = taken
        answer = await client.call("Scan", request)
        if taken is not None:
            allowance.give_back(taken - answer["ScannedCount"])
        if rate is not None:
            await wait_after(rate, answer["ConsumedCapacity"]["CapacityUnits"])
        found = (item_violations(target, item) for item in answer["Items"])
        yield ScannedPage(
            answer["ScannedCount"], [violations for violations in found if violations]
        )
        if "LastEvaluatedKey" not in answer:
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def item_violations(target: Target, item: Item) -> list[ItemViolation]:
    """The values of an item that can't be in the index's key. Missing attributes are allowed."""
    key = {name: item[name] for name in target.table_key}
    schema = target.index_key
    found = []
    for part, limit_bytes in (
        (schema.partition, PARTITION_KEY_BYTES),
        (schema.sort, SORT_KEY_BYTES),
    ):
        present = [attribute for attribute in part if attribute.name in item]
        part_violations = [
            ItemViolation(key, attribute, item[attribute.name], reason)
            for attribute in present
            if (reason := key_violation(schema, attribute, item[attribute.name])) is not None
        ]
        if not part_violations and present and part_size_bytes(part, item) > limit_bytes:
            longest = max(
                present, key=lambda attribute: attribute_value.size_bytes(item[attribute.name])
            )
            part_violations = [ItemViolation(key, longest, item[longest.name], "too long together")]
        found += part_violations
    return found


async def correct(
    client: Endpoint,
    target: Target,
    violations: Sequence[ItemViolation],
    fix: Fix,
    rate: SteadyRate | None = None,
) -> list[ItemViolation]:
    """Correct an unchanged item atomically; returns its outcomes. Raises as ``Endpoint.call``."""
    new_values = {
        at: value
        for at, violation in enumerate(violations)
        if violation.attribute.name not in target.table_key
        and (value := fix.new_value(violation)) is not None
        and (not value or is_possible(target.index_key, violation.attribute, value))
    }
    outcomes = {
        at: _IN_TABLE_KEY if violation.attribute.name in target.table_key else _NO_VALUE
        for at, violation in enumerate(violations)
    }
    if new_values:
        refusal = await _update(client, target, violations, new_values, rate)
        for at, value in new_values.items():
            outcomes[at] = refusal or (REWRITTEN if value else REMOVED)
    return [
        ItemViolation(
            violation.key, violation.attribute, violation.value, violation.reason, outcomes[at]
        )
        for at, violation in enumerate(violations)
    ]


def is_possible(schema: KeySchema, attribute: KeyAttribute, value: AttributeValue) -> bool:
    """Whether a value can be this attribute of the index's key."""
    return key_violation(schema, attribute, value) is None


async def _update(
    client: Endpoint,
    target: Target,
    violations: Sequence[ItemViolation],
    new_values: Mapping[int, AttributeValue],
    rate: SteadyRate | None,
) -> str:
    """Replace all old values with new ones, or none. Returns the reason if none was replaced."""
    sets = [f"#{at} = :new{at}" for at, value in new_values.items() if value]
    removes = [f"#{at}" for at, value in new_values.items() if not value]
    request = {
        "TableName": target.table_name,
        "Key": violations[0].key,
        "UpdateExpression": " ".join(
            f"{keyword} {', '.join(actions)}"
            for keyword, actions in (("SET", sets), ("REMOVE", removes))
            if actions
        ),
        "ConditionExpression": " AND ".join(f"#{at} = :old{at}" for at in new_values),
        "ExpressionAttributeNames": {f"#{at}": violations[at].attribute.name for at in new_values},
        "ExpressionAttributeValues": {
            **{f":old{at}": violations[at].value for at in new_values},
            **{f":new{at}": value for at, value in new_values.items() if value},
        },
    }
    if rate is not None:
        request["ReturnConsumedCapacity"] = "TOTAL"
    try:
        answer = await client.call("UpdateItem", request)
    except RequestFailed as error:
        if error.error_type == "ConditionalCheckFailedException":
            return _CHANGED
        if error.error_type == "ValidationException":
            return f"not corrected: {error.message}"
        raise
    if rate is not None:
        await wait_after(rate, answer["ConsumedCapacity"]["CapacityUnits"])
    return ""

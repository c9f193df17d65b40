"""Contributor Insights of a table or global index: its states, and the names of its rules.

Sources: API reference, "UpdateContributorInsights" and "DescribeContributorInsights"; Developer
Guide, "CloudWatch Contributor Insights for DynamoDB: how it works" (four rules; two for a table
without a sort key, and two in the mode for throttled keys); AWS CLI reference,
"describe-contributor-insights" (the names and their order).
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from dynactor.model.definitions.table import (
    ContributorInsights,
    ContributorInsightsMode,
    TableDefinition,
)
from dynactor.model.errors import ResourceNotFoundException
from dynactor.model.keys.key import KeySchema

ContributorInsightsStatus: TypeAlias = Literal["ENABLING", "ENABLED", "DISABLING", "DISABLED"]

# DynamoDB's default.
DEFAULT_MODE: Final[ContributorInsightsMode] = "ACCESSED_AND_THROTTLED_KEYS"

_RULE_CHARACTERS: Final = 128  # <= (botocore's service model, "ContributorInsightsRule")
_PREFIX: Final = "DynamoDBContributorInsights"
_MILLISECONDS: Final = 1_000


def resource_insights(table: TableDefinition, index_name: str | None) -> ContributorInsights | None:
    """The insights of a table or index, if ever enabled; raises ``ResourceNotFoundException``."""
    if index_name is None:
        return table.contributor_insights
    index = table.global_index(index_name)
    if index is None:
        raise ResourceNotFoundException(
            f"Requested resource not found: Index: {index_name} of table: {table.name} not found"
        )
    return index.contributor_insights


def changed(
    table: TableDefinition,
    index_name: str | None,
    mode: ContributorInsightsMode | None,
    now_epoch_seconds: float,
    *,
    enabled: bool,
) -> TableDefinition:
    """The table after enabling or disabling insights for the table or for one of its indexes.

    A mode of None keeps the current mode. Returns the same table if nothing changes. Raises
    ``ResourceNotFoundException``.
    """
    known = resource_insights(table, index_name)
    mode = mode or (known.mode if known else DEFAULT_MODE)
    if known is None and not enabled:
        return table
    if known is not None and (known.enabled, known.mode) == (enabled, mode):
        return table
    insights = ContributorInsights(enabled, mode, now_epoch_seconds)
    if index_name is None:
        return replace(table, contributor_insights=insights)
    return replace(
        table,
        global_indexes=tuple(
            replace(index, contributor_insights=insights)
            if index.definition.name == index_name
            else index
            for index in table.global_indexes
        ),
    )


def insights_status(
    insights: ContributorInsights | None, now_epoch_seconds: float, transition_seconds: float
) -> ContributorInsightsStatus:
    """The current status; a change of status takes this many seconds of domain time."""
    if insights is None:
        return "DISABLED"
    if now_epoch_seconds - insights.changed_epoch_seconds < transition_seconds:
        return "ENABLING" if insights.enabled else "DISABLING"
    return "ENABLED" if insights.enabled else "DISABLED"


def rule_names(
    table_name: str, schema: KeySchema, insights: ContributorInsights | None
) -> list[str]:
    """The CloudWatch rules that DynamoDB would have created; none while disabled.

    PKC and PKT count partition keys, SKC and SKT whole primary keys. Rules ending in C count
    accesses, rules ending in T count throttled requests. The table's name is cut if the rule's name
    would be too long.
    """
    if insights is None or not insights.enabled:
        return []
    kinds = ["PKC", "SKC", "PKT", "SKT"]
    if not schema.sort:
        kinds = [kind for kind in kinds if kind.startswith("P")]
    if insights.mode == "THROTTLED_KEYS":
        kinds = [kind for kind in kinds if kind.endswith("T")]
    made_at = f"{insights.changed_epoch_seconds * _MILLISECONDS:.0f}"
    name_characters = _RULE_CHARACTERS - len(f"{_PREFIX}-PKC--{made_at}")
    return [f"{_PREFIX}-{kind}-{table_name[:name_characters]}-{made_at}" for kind in kinds]

"""DescribeContributorInsights."""

from __future__ import annotations

from typing import Any

from msgspec import json

from dynactor.actors.phases.contributor_insights import ContributorInsightsSwitch
from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeContributorInsightsInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.tables import contributor_insights

_TIME_DIGITS = 3


async def handle(call: Call[DescribeContributorInsightsInput]) -> bytes:
    """Show the state of Contributor Insights for a table or one of its global indexes."""
    index_name = call.request.IndexName
    database = call.database
    definition = (await database.describe(table_name(call.request.TableName))).definition
    insights = contributor_insights.resource_insights(definition, index_name)
    shown: dict[str, Any] = {"TableName": definition.name}
    schema = definition.key_schema
    if index_name is not None:
        shown["IndexName"] = index_name
        index = definition.global_index(index_name)
        assert index is not None
        schema = index.definition.key_schema
    status = database.part(ContributorInsightsSwitch).status(insights)
    if status != "DISABLED":
        shown["ContributorInsightsRuleList"] = contributor_insights.rule_names(
            definition.name, schema, insights
        )
    shown["ContributorInsightsStatus"] = status
    if insights is not None:
        shown["LastUpdateDateTime"] = round(insights.changed_epoch_seconds, _TIME_DIGITS)
        shown["ContributorInsightsMode"] = insights.mode
    return json.encode(shown)


OPERATION = Operation(
    DescribeContributorInsightsInput,
    handle,
    asks=asks.table_or_index,
    effect=Effect.DESCRIBES,
    location=Location.HOME,
)

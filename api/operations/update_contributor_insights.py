"""UpdateContributorInsights."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.phases.contributor_insights import UpdateContributorInsights
from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import UpdateContributorInsightsInput
from dynactor.api.requests.table_arn import table_name


async def handle(call: Call[UpdateContributorInsightsInput]) -> bytes:
    """Start or stop recording the busiest keys of a table or of one of its global indexes."""
    request = call.request
    name = table_name(request.TableName)
    switched = await call.database.ask(
        UpdateContributorInsights(
            name,
            request.IndexName,
            request.ContributorInsightsAction == "ENABLE",
            request.ContributorInsightsMode,
        )
    )
    return json.encode(
        {
            "TableName": name,
            **({} if request.IndexName is None else {"IndexName": request.IndexName}),
            "ContributorInsightsStatus": switched.status,
            **({} if switched.mode is None else {"ContributorInsightsMode": switched.mode}),
        }
    )


OPERATION = Operation(UpdateContributorInsightsInput, handle, asks=asks.table_or_index)

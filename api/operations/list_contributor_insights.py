"""ListContributorInsights."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec import MsgspecError, json

from dynactor.actors.database.database import Database
from dynactor.actors.phases.contributor_insights import ContributorInsightsSwitch
from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import ListContributorInsightsInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.definitions.table import ContributorInsights, TableDefinition
from dynactor.model.errors import invalid_value
from dynactor.model.limits import LIST_CONTRIBUTOR_INSIGHTS_PAGE

_decode_token: Final = json.Decoder(tuple[str, str]).decode


class _ListedResource(NamedTuple):
    """A table (then ``index_name`` is empty), or a global index of it."""

    table_name: str
    index_name: str


async def handle(call: Call[ListContributorInsightsInput]) -> bytes:
    """A page of the tables and indexes for which Contributor Insights was ever enabled."""
    request = call.request
    limit = request.MaxResults
    if limit is not None and limit < 1:
        raise invalid_value("MaxResults must be at least 1")
    found = {
        resource: insights
        for definition in await _definitions(call.database, request.TableName)
        for resource, insights in _table_resources(definition)
    }
    names = sorted(found)
    first = 0 if request.NextToken is None else bisect_right(names, _resource(request.NextToken))
    page = names[first : first + (limit or LIST_CONTRIBUTOR_INSIGHTS_PAGE)]
    answer: dict[str, Any] = {
        "ContributorInsightsSummaries": [
            {
                "TableName": resource.table_name,
                **({"IndexName": resource.index_name} if resource.index_name else {}),
                "ContributorInsightsStatus": call.database.part(ContributorInsightsSwitch).status(
                    found[resource]
                ),
                "ContributorInsightsMode": found[resource].mode,
            }
            for resource in page
        ]
    }
    if first + len(page) < len(names):
        answer["NextToken"] = json.encode(page[-1]).decode()
    return json.encode(answer)


async def _definitions(database: Database, asked: str | None) -> list[TableDefinition]:
    if asked is None:
        return await database.definitions()
    name = table_name(asked)
    if name not in database.tables_elsewhere:
        return [(await database.describe(name)).definition]
    return [each for each in await database.definitions() if each.name == name]


def _table_resources(
    definition: TableDefinition,
) -> Iterator[tuple[_ListedResource, ContributorInsights]]:
    if definition.contributor_insights is not None:
        yield _ListedResource(definition.name, ""), definition.contributor_insights
    for index in definition.global_indexes:
        if index.contributor_insights is not None:
            yield (
                _ListedResource(definition.name, index.definition.name),
                index.contributor_insights,
            )


def _resource(token: str) -> _ListedResource:
    """The last resource of the previous page, which may have been deleted."""
    try:
        return _ListedResource(*_decode_token(token))
    except MsgspecError:
        raise invalid_value("NextToken is not one of ListContributorInsights") from None


OPERATION = Operation(
    ListContributorInsightsInput,
    handle,
    asks=asks.no_resource,
    effect=Effect.DESCRIBES,
    location=Location.LEADER,
)

"""ImportTable."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import json

from dynactor.actors.transfers.table_imports import ImportTable
from dynactor.api.access import asks, bucket_asks
from dynactor.api.access.ask import Ask, Asking
from dynactor.api.answers import transfers
from dynactor.api.execution.operation import Operation
from dynactor.api.requests import inputs
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import ImportTableInput
from dynactor.api.requests.source_format import check_ion
from dynactor.api.requests.table_request import (
    attribute_definitions,
    given,
    key_elements,
    new_global_index,
    throughput,
)
from dynactor.model.errors import ValidationException
from dynactor.model.tables.table_rules import NewTable, define


async def handle(call: Call[ImportTableInput]) -> bytes:
    """Start an import; the table is ACTIVE once all items and indexes are complete."""
    request, database = call.request, call.database
    if request.InputFormat == "ION":
        check_ion()
    if request.TableCreationParameters.VectorIndexes:
        raise ValidationException("VectorIndexes are not supported yet")
    if request.InputFormatOptions is not None and request.InputFormat != "CSV":
        raise ValidationException(
            "Invalid Request: Unsupported InputFormatOptions for the given input format: "
            f"{request.InputFormat}."
        )
    definition = define(_new_table(request.TableCreationParameters), database.settings.region)
    begun = await database.ask(
        ImportTable(definition, transfers.given_members(request), call.bucket_grant)
    )
    return json.encode({"ImportTableDescription": transfers.import_description(database, begun)})


def _new_table(parameters: inputs.TableCreationParametersShape) -> NewTable:
    indexes = parameters.GlobalSecondaryIndexes
    return NewTable(
        parameters.TableName,
        key_elements(parameters.KeySchema),
        attribute_definitions(parameters.AttributeDefinitions),
        None,
        None if indexes is None else tuple(map(new_global_index, indexes)),
        billing_mode=parameters.BillingMode,
        throughput=throughput(parameters.ProvisionedThroughput),
        sse_specification=given(parameters.SSESpecification),
        on_demand_throughput=given(parameters.OnDemandThroughput),
    )


def _asks(asking: Asking) -> Iterator[Ask]:
    yield asks.on_table(asking, asking.request.TableCreationParameters.TableName)
    yield bucket_asks.list_source(asking, asking.request.S3BucketSource)


def _objects(request: ImportTableInput) -> Iterator[bucket_asks.Objects]:
    yield bucket_asks.read_objects(request.S3BucketSource)


OPERATION = Operation(ImportTableInput, handle, asks=_asks, objects=_objects)

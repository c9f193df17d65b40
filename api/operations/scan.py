"""Scan."""

from __future__ import annotations

from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.api.access import data_asks
from dynactor.api.execution.operation import DATA_FAULTS, Effect, Location, Operation
from dynactor.api.execution.page_requests import (
    check_select,
    check_start_key_values,
    named_index,
    page_answer,
    page_rules,
    scan_start,
)
from dynactor.api.requests import as_of
from dynactor.api.requests.call import Call
from dynactor.api.requests.expression_members import (
    check_together,
    read_filter,
    read_legacy_filter,
    read_legacy_projector,
    read_placeholders,
    read_projector,
)
from dynactor.api.requests.inputs import ScanInput
from dynactor.api.requests.maintenance_header import is_maintenance
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.key_conditions import key_range
from dynactor.model.key_conditions.key_range import KeyRange


async def handle(call: Call[ScanInput]) -> bytes:
    """One page of a table or index, in the order of the partition keys' hashes."""
    request = call.request
    name = table_name(request.TableName)
    check_together(request)
    legacy_filter = read_legacy_filter(request.ScanFilter, request.ConditionalOperator)
    read_legacy_projector(request)
    check_start_key_values(request.ExclusiveStartKey)
    wanted = _segment_range(request)
    placeholders = read_placeholders(request)
    condition = read_filter(request.FilterExpression, legacy_filter, placeholders)
    projector = read_projector(request, placeholders)
    placeholders.check_all_used()
    check_select(request)
    table = call.database.table(name)
    definition = table.definition
    index = named_index(definition, request.IndexName, consistent=request.ConsistentRead is True)
    after = None
    if request.ExclusiveStartKey is not None:
        after = scan_start(definition, index, request.ExclusiveStartKey)
        if not key_range.contains(wanted, after):
            raise ValidationException(
                "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use "
                "ExclusiveStartKey with correct Segment. TotalSegments: "
                f"{request.TotalSegments} Segment: {request.Segment}"
            )
    rules = page_rules(request, definition, index, condition, projector)
    check_scalar_keys(definition, placeholders.nested)
    read = ReadRange(
        wanted,
        rules,
        index=index,
        after=after,
        consistent=bool(request.ConsistentRead),
        by_partition=True,
        is_counted=not is_maintenance(call.headers),
    )
    is_past = call.as_of_epoch_seconds is not None
    reading = as_of.read_page(call, table, read) if is_past else read_page(table, read)
    page = await call.noting(definition, reading)
    return page_answer(request, name, page)


def _segment_range(request: ScanInput) -> KeyRange:
    segment, total_segments = request.Segment, request.TotalSegments
    if total_segments is None:
        if segment is not None:
            raise ValidationException(
                "The TotalSegments parameter is required but was not present in the request "
                "when Segment parameter is present"
            )
        return key_range.WHOLE
    if segment is None:
        raise ValidationException(
            "The Segment parameter is required but was not present in the request when "
            "parameter TotalSegments is present"
        )
    if segment >= total_segments:
        raise ValidationException(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            f"Segment: {segment} is not less than TotalSegments: {total_segments}"
        )
    return key_range.segment_range(segment, total_segments)


OPERATION = Operation(
    ScanInput,
    handle,
    asks=data_asks.scan,
    effect=Effect.READS,
    location=Location.HOME,
    reads_past=True,
    faults=DATA_FAULTS,
)

"""The command ``dynactor advise``: advice on a table, from the requests of the last hour."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import Annotated, Final

import anyio
import msgspec
from cyclopts import Parameter
from cyclopts.types import NonNegativeInt, PositiveFloat, PositiveInt

from dynactor.api.advice.facts import AdviceFacts, gather
from dynactor.api.advice.key_findings import Finding, Level
from dynactor.api.advice.report import Asked, all_findings, report
from dynactor.api.advice.text import figure, size, time_span
from dynactor.api.clients.client import RetryingEndpoint, open_client
from dynactor.api.clients.tables_address import TablesAddress

_WIDTH: Final = 96
_MARKS: Final[dict[Level, str]] = {"problem": "!! ", "hint": " ! ", "fact": "   "}

_encode = msgspec.json.Encoder().encode


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AdviseOptions:
    """The table, and the planned load and index to advise on."""

    table: str
    """Table to advise on."""

    write_units: PositiveInt | None = None
    """Provisioned write units to compare the recorded load with, instead of the table's."""

    read_units: PositiveInt | None = None
    """Provisioned read units to compare the recorded load with, instead of the table's."""

    writes_per_second: PositiveFloat | None = None
    """Planned writes per second to one partition key, or with --index-key to the whole table."""

    item_size_bytes: PositiveInt | None = None
    """Bytes per planned write. Default: the mean size of the table's items."""

    index_key: str | None = None
    """Attribute for the partition key of a new global secondary index."""

    sample_items: NonNegativeInt = 1_000
    """Approximate number of the table's items to sample, at most 10,000. It takes no read units."""

    json: Annotated[bool, Parameter(negative=())] = False
    """Print JSON."""

    server: TablesAddress = field(default_factory=TablesAddress)


def advise(options: AdviseOptions) -> None:
    """Run the command."""
    facts = anyio.run(_gather, options)
    findings = all_findings(
        facts,
        Asked(
            options.index_key,
            options.write_units,
            options.read_units,
            options.writes_per_second,
            options.item_size_bytes,
        ),
    )
    if options.json:
        sys.stdout.write(_encode(report(facts, findings)).decode() + "\n")
    else:
        sys.stdout.write(_text(facts, findings))


async def _gather(options: AdviseOptions) -> AdviceFacts:
    async with open_client(options.server.endpoint, options.server.region) as client:
        return await gather(options.server.admin_client(), RetryingEndpoint(client), options)


def _text(facts: AdviceFacts, findings: Sequence[tuple[str, list[Finding]]]) -> str:
    text = _headline(facts)
    for headline, part_findings in findings:
        text += f"\n{headline}\n"
        for each in part_findings:
            rules = f" ({', '.join(each.rules)})" if each.rules else ""
            text += _paragraph(_MARKS[each.level], f"{each.text}{rules}")
            if each.advice:
                text += _paragraph("    > ", each.advice)
    return text


def _headline(facts: AdviceFacts) -> str:
    description = facts.description
    throughput = description["ProvisionedThroughput"]
    mode = (
        f"{throughput['ReadCapacityUnits']:,} read and {throughput['WriteCapacityUnits']:,} write "
        "units"
        if facts.is_provisioned
        else "on demand"
    )
    partitions = facts.use.partitions[""]
    counted = {
        "all": "every request was counted",
        "some": "counted from a sample of the requests",
        "none": "not counted: Contributor Insights and --key-traffic are off",
    }[facts.traffic.answer.recording]
    return (
        f"Table {facts.use.table}: {description['ItemCount']:,} items of "
        f"{size(facts.average_item_bytes)}, {mode}, {partitions} "
        f"{'partition' if partitions == 1 else 'partitions'}\n"
        f"Traffic {time_span(facts.traffic.start_epoch_seconds, facts.use.now)}, {counted}\n"
        f"{figure(facts.traffic.total('reads'))} read and "
        f"{figure(facts.traffic.total('writes'))} write units by key; "
        f"{len(facts.sample):,} items sampled\n"
    )


def _paragraph(mark: str, text: str) -> str:
    return fill(text, _WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark)) + "\n"

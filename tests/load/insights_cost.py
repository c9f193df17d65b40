"""What counting keys costs: ``python -m tests.load.insights_cost --help``.

Gets and puts of one table on a server that counts nothing, on one that samples for advice, and with
Contributor Insights on. Rounds alternate and medians are shown; what counts is the processor time
of the server per request, and the first line is what the others are compared with.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from tests.load.benchmark import TABLE, Sample, prepare, sample
from tests.load.servers import Server
from tests.support.server import running_server
from tests.support.wire import Connection

Action = Literal["ENABLE", "DISABLE"]
Kind = Literal["PutItem", "GetItem"]


class Case(NamedTuple):
    """A server, and how Contributor Insights of its table stands."""

    name: str
    server: Server
    action: Action


@contextmanager
def cases(directory: Path) -> Iterator[Sequence[Case]]:
    """Each way of counting."""
    with ExitStack() as stack:

        def started(name: str, *arguments: str) -> Server:
            running = stack.enter_context(running_server(*arguments, data_dir=directory / name))
            port = int(running.endpoint.rpartition(":")[2])
            return Server(name, "127.0.0.1", port, running.process.pid)

        nothing, sampling = started("nothing", "--no-key-traffic"), started("sampling")
        yield (
            Case("nothing", nothing, "DISABLE"),
            Case("a sample", sampling, "DISABLE"),
            Case("all, Contributor Insights", nothing, "ENABLE"),
        )


async def switch(case: Case) -> None:
    """Have keys counted as a case wants it."""
    connection = await Connection.open(case.server.host, case.server.port)
    body = {"TableName": TABLE, "ContributorInsightsAction": case.action}
    answer = await connection.call("UpdateContributorInsights", body)
    if answer.status != 200:
        raise RuntimeError(f"UpdateContributorInsights: {answer}")
    await connection.close()


async def run(options: argparse.Namespace, compared: Sequence[Case]) -> None:
    """Measure by turns, print a line for each."""
    for server in {case.server.name: case.server for case in compared}.values():
        await prepare(server)
    kinds: tuple[Kind, ...] = ("GetItem", "PutItem")
    for kind in kinds:
        samples: dict[str, list[Sample]] = {case.name: [] for case in compared}
        for turn in range(options.rounds):
            # Each is as often first as last.
            for case in compared if turn % 2 else reversed(compared):
                await switch(case)
                found = await sample(case.server, kind, options.connections, options.seconds)
                samples[case.name].append(found)
        _print(kind, compared, samples)


def _print(kind: Kind, compared: Sequence[Case], samples: dict[str, list[Sample]]) -> None:
    print(f"\n{kind + ', counted:':32}{'requests/s':>12}{'CPU µs/request':>16}{'more':>8}")
    first = median(each.cpu_per_request for each in samples[compared[0].name])
    for case in compared:
        of_case = samples[case.name]
        cpu = median(each.cpu_per_request for each in of_case)
        rate = median(each.requests_per_second for each in of_case)
        print(f"{case.name:32}{rate:12,.0f}{cpu:16.2f}{cpu / first - 1:8.1%}", flush=True)


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.insights_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3, help="of each round")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    if options.directory is not None:
        options.directory.mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory(dir=options.directory) as temporary,
        cases(Path(temporary)) as compared,
    ):
        asyncio.run(run(options, compared))


if __name__ == "__main__":
    main()

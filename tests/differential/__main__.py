# ruff: noqa: T201 - the report is printed
"""Runs the comparison: ``python -m tests.differential``.

Exits with 1 after an unknown difference.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from tests.differential import recording
from tests.differential.differences.compare import Difference
from tests.differential.differences.kinds import kind_of
from tests.differential.peers.local import running_local
from tests.differential.peers.peer import Peer
from tests.differential.requests.generate import scenarios
from tests.differential.run import run
from tests.support.servers.server import running_server

_SHOWN_CHARACTERS = 1500


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="another seed, other requests")
    parser.add_argument("--requests", type=int, default=6000, help="how many at least")
    parser.add_argument("--endpoint", help="this server, if it runs already")
    parser.add_argument("--local", help="DynamoDB Local, if it runs already")
    parser.add_argument("--shown", type=int, default=20, help="how many unknown forms are shown")
    parser.add_argument(
        "--record", type=Path, help="write DynamoDB Local's answers to this file, and don't report"
    )
    return parser.parse_args()


@contextmanager
def _peers(arguments: argparse.Namespace) -> Iterator[tuple[Peer, Peer]]:
    with ExitStack() as stack:
        endpoint = arguments.endpoint or stack.enter_context(running_server()).endpoint
        local = arguments.local or stack.enter_context(running_local())
        yield (
            stack.enter_context(closing(Peer(endpoint))),
            stack.enter_context(closing(Peer(local))),
        )


def _show(found: list[Difference]) -> None:
    one = found[0]
    print(f"\n{len(found)} times {one.signature}")
    print(f"   faults: {', '.join(one.request.faults) or 'none on purpose'}")
    print(f"   {one.request.operation} {one.request.body:.{_SHOWN_CHARACTERS}}")
    print(f"   ours:  {one.ours!s:.{_SHOWN_CHARACTERS}}")
    print(f"   local: {one.local!s:.{_SHOWN_CHARACTERS}}")


def main() -> int:
    """Compare the servers and print a report; return the exit status."""
    arguments = _arguments()
    made = scenarios(arguments.seed, arguments.requests)
    statuses: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    unknown: dict[str, list[Difference]] = {}
    with _peers(arguments) as (ours, local):
        if arguments.record is not None:
            recording.record(run(made, ours, local), arguments.record)
            return 0
        for outcome in run(made, ours, local):
            statuses["accepted" if outcome.accepted else "refused"] += 1
            if outcome.difference is None:
                continue
            kind = kind_of(outcome.difference)
            if kind is None:
                unknown.setdefault(outcome.difference.signature, []).append(outcome.difference)
            else:
                kinds[kind.name] += 1
    differing = kinds.total() + sum(map(len, unknown.values()))
    print(f"{statuses.total()} requests, {statuses['accepted']} accepted by this server,")
    print(f"{statuses.total() - differing} answers equal, {differing} different:")
    for name, count in kinds.most_common():
        print(f"{count:6} {name}")
    print(f"{differing - kinds.total():6} of no known kind, in {len(unknown)} forms")
    by_count = sorted(unknown.values(), key=len, reverse=True)
    for found in by_count[: arguments.shown]:
        _show(found)
    return 1 if unknown else 0


sys.exit(main())

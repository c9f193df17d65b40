"""Stores DynamoDB Local's answers in a file, so that tests can compare answers without Java."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tests.differential.requests.request import Request
from tests.differential.run import Outcome

RECORDED = Path(__file__).parent / "recorded.json"


class Recording(msgspec.Struct, array_like=True, frozen=True):
    """Requests after one setup of tables, with DynamoDB Local's normalized answers."""

    name: str
    setup: list[Request]
    exchanges: list[tuple[Request, dict[str, Any]]]
    teardown: list[Request]


def record(outcomes: Iterable[Outcome], file: Path) -> None:
    """Store the answers of a run.

    Before each request, a replay must have the same data as DynamoDB Local had. So a write that
    only one server accepts is omitted, and a new recording starts after it with the setup.
    """
    recordings: list[Recording] = []
    begin = True
    for outcome in outcomes:
        scenario = outcome.scenario
        if begin or scenario.name != recordings[-1].name:
            setup, teardown = list(scenario.setup), list(scenario.teardown)
            recordings.append(Recording(scenario.name, setup, [], teardown))
        begin = outcome.spoiled
        if not outcome.spoiled:
            recordings[-1].exchanges.append((outcome.request, outcome.local))
    kept = [recording for recording in recordings if recording.exchanges]
    lines = b",\n".join(msgspec.json.encode(recording) for recording in kept)
    file.write_bytes(b"[\n" + lines + b"\n]\n")


def load(file: Path = RECORDED) -> list[Recording]:
    """Load the recordings."""
    return msgspec.json.decode(file.read_bytes(), type=list[Recording])

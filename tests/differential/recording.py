"""DynamoDB Local's answers to some hundred requests, kept in a file: an oracle without Java."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tests.differential.requests.request import Request
from tests.differential.run import Outcome

RECORDED = Path(__file__).parent / "recorded.json"


class Recording(msgspec.Struct, array_like=True, frozen=True):
    """Requests on one set-up, with DynamoDB Local's normalised answers."""

    name: str
    setup: list[Request]
    exchanges: list[tuple[Request, dict[str, Any]]]
    teardown: list[Request]


def record(outcomes: Iterable[Outcome], file: Path) -> None:
    """Keep the answers of a run.

    A write that one server accepts and the other refuses is left out, and what follows it is
    a recording of its own: a replay must find the data that DynamoDB Local had.
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
    """What was recorded."""
    return msgspec.json.decode(file.read_bytes(), type=list[Recording])

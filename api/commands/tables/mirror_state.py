"""The state of a mirror, and the file that keeps it so that the mirror can continue."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from dynactor.api.commands.tables.shard_positions import ShardPosition
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.storage.data_directory import write_durably

_FORMAT: Final = 1

# COPYING: segments are scanned. CLEARING: items that the source lacks are deleted from the copy.
Phase: TypeAlias = Literal["COPYING", "CLEARING", "FOLLOWING"]


class Segment(Struct):
    """The progress of one segment of the scan: the key to continue after, None for the start."""

    after: dict[str, Any] | None = None
    has_ended: bool = False


class MirrorState(Struct):
    """The progress of a mirror.

    ``target_id`` identifies the table that has the copied items. ``clears``: the copy had items
    when the scan started, so the items that the source lacks must be deleted.
    """

    source: str
    target: str
    stream_arn: str
    target_id: str
    positions: dict[str, ShardPosition]
    segments: list[Segment]
    clears: bool = False
    phase: Phase = "COPYING"
    format: int = _FORMAT
    items: int = 0
    changes: int = 0


class StateFile:
    """Keeps the state of the mirror between two tables. A lock lets only one process use it."""

    def __init__(self, path: Path, source: str, target: str) -> None:
        self._path = path
        self._source = source
        self._target = target

    def unstarted(self) -> MirrorState:
        """The state before the first start, which no table and no stream fits."""
        return MirrorState(self._source, self._target, "", "", {}, [])

    def load(self) -> MirrorState | None:
        """The stored state, if any; raises ``TransferFailed`` if it is another mirror's."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            state = msgspec.json.decode(data, type=MirrorState)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise TransferFailed(
                f"{self._path} is not the state of a mirror: {error}; delete it to copy again"
            ) from None
        if state.format != _FORMAT:
            raise TransferFailed(f"{self._path} was written by another version of this command")
        if (state.source, state.target) != (self._source, self._target):
            raise TransferFailed(
                f"{self._path} belongs to the mirror from {state.source} to {state.target}: give "
                "another file with --state"
            )
        return state

    def save(self, state: MirrorState) -> None:
        """Replace the file, so that a crash leaves the old or the new state."""
        write_durably(self._path, msgspec.json.encode(state))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the file within the context; raises ``TransferFailed`` if another process has it."""
        with self._path.with_name(f"{self._path.name}.lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TransferFailed(f"Another process uses {self._path}") from None
            yield

"""The history of writes, and the results that reads may return because of it.

Each item has one writer at a time, which numbers its versions. A read may show any version from the
last one acknowledged before the read began to the last one begun before it ended. A version that a
read showed counts as acknowledged for later reads. The outcome of a write without an answer, or
with an internal error of the server, is unknown: its version is allowed from then on. An eventually
consistent read of an index may be behind, but shows only written versions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dynactor.load.check.findings import Finding, Findings, Kind
from dynactor.load.work.records import Seen, Stamps

# None: the item does not exist.
State = Stamps | None
_LOADED: Final = 0


class Write(NamedTuple):
    """A write in progress. ``stamps`` are the versions of the new item's fields; None: deleted."""

    number: int
    version: int
    stamps: State
    # The last version acknowledged before; None after a write of unknown outcome.
    expected: int | None = None


class Read(NamedTuple):
    """A read in progress; ``floor`` is the last version acknowledged when it began."""

    number: int
    floor: int


class _History:
    """One item's versions. Invariant: ``states`` holds each version that a read may show."""

    __slots__ = ("floor", "last", "readers", "refused", "states", "unknown", "writing")

    def __init__(self, initial: State) -> None:
        self.floor = _LOADED
        self.last = _LOADED
        self.states: dict[int, State] = {_LOADED: initial}
        self.unknown: set[int] = set()
        self.refused: set[int] = set()
        # The number of reads in progress by their floor.
        self.readers: dict[int, int] = {}
        self.writing = False

    def end_read(self, floor: int) -> None:
        """End a read."""
        self.readers[floor] -= 1
        if not self.readers[floor]:
            del self.readers[floor]

    def prune(self) -> None:
        """Drop versions that no consistent read may show any more."""
        if len(self.states) > 1:
            lowest = min(self.readers, default=self.floor)
            self.states = {
                version: state
                for version, state in self.states.items()
                if version >= lowest or version in self.unknown
            }


class Ledger:
    """The versions of all items that only this worker writes.

    Items with numbers below ``loaded`` begin with version 0; all others don't exist at first.
    """

    def __init__(self, fields: int, loaded: int) -> None:
        self.findings = Findings()
        self._first: Stamps = (_LOADED,) * fields
        self._loaded = loaded
        self._histories: dict[int, _History] = {}

    def numbers(self) -> list[int]:
        """All items that were read or written."""
        return list(self._histories)

    def is_free(self, number: int) -> bool:
        """Whether no write of this item is in flight."""
        history = self._histories.get(number)
        return history is None or not history.writing

    def _history(self, number: int) -> _History:
        history = self._histories.get(number)
        if history is None:
            initial = self._first if number < self._loaded else None
            history = self._histories[number] = _History(initial)
        return history

    def begin_put(self, number: int) -> Write:
        """Record that a write of the whole item is about to be sent."""
        version = self._history(number).last + 1
        return self._begin(number, (version,) * len(self._first))

    def begin_update(self, number: int) -> Write | None:
        """Record that one field is about to be set; None if the other fields are unknown."""
        history = self._history(number)
        before = history.states.get(history.floor)
        if history.unknown or before is None:
            return None
        version = history.last + 1
        position = version % len(before)
        return self._begin(number, (*before[:position], version, *before[position + 1 :]))

    def begin_delete(self, number: int) -> Write:
        """Record that the item is about to be deleted."""
        return self._begin(number, None)

    def _begin(self, number: int, state: State) -> Write:
        history = self._history(number)
        assert not history.writing, "one writer at a time"
        there = history.states.get(history.floor) is not None
        expected = history.floor if there and not history.unknown else None
        history.last += 1
        history.states[history.last] = state
        history.writing = True
        return Write(number, history.last, state, expected)

    def acknowledged(self, write: Write) -> None:
        """Record that the server acknowledged the write."""
        history = self._end(write)
        history.floor = max(history.floor, write.version)
        history.prune()
        self.findings.writes_acknowledged += 1

    def refused(self, write: Write) -> None:
        """Record that the server refused the write."""
        history = self._end(write)
        del history.states[write.version]
        history.refused.add(write.version)
        if history.floor == write.version:
            text = f"version {write.version} was read, and then refused"
            self.findings.note(Finding("refused", write.number, text))

    def unanswered(self, write: Write) -> None:
        """Record that the outcome of the write is unknown."""
        self._end(write).unknown.add(write.version)
        self.findings.writes_unknown += 1

    def _end(self, write: Write) -> _History:
        history = self._histories[write.number]
        assert history.writing
        history.writing = False
        return history

    def condition_failed(self, write: Write) -> None:
        """Record that the server found another version than the last acknowledged one."""
        if write.expected is not None:
            text = f"version {write.expected} was acknowledged, and the server has another one"
            self.findings.note(Finding("condition", write.number, text))

    def begin_read(self, number: int) -> Read:
        """Record that a read is about to be sent."""
        history = self._history(number)
        history.readers[history.floor] = history.readers.get(history.floor, 0) + 1
        return Read(number, history.floor)

    def unread(self, read: Read) -> None:
        """Record that the read failed."""
        self._histories[read.number].end_read(read.floor)

    def end_read(
        self, read: Read, seen: Seen | None, *, consistent: bool = True, at_end: bool = False
    ) -> None:
        """Record that the read showed this version, or that the item does not exist."""
        history = self._histories[read.number]
        history.end_read(read.floor)
        self.findings.reads_checked += 1
        if consistent:
            shown = self._shown(history, read.floor, seen)
            if shown is None:
                self._find(history, read.floor, read.number, seen, at_end=at_end)
            elif shown not in history.unknown:
                history.floor = max(history.floor, shown)
        elif seen is not None and not self._was_written(history, seen):
            self._find(history, _LOADED, read.number, seen, at_end=at_end)
        history.prune()

    def _was_written(self, history: _History, seen: Seen) -> bool:
        """Whether this version was ever written. The fields of a dropped version are unknown."""
        if seen.version in history.states:
            return history.states[seen.version] == seen.stamps
        return seen.version < history.floor and seen.version not in history.refused

    def _shown(self, history: _History, floor: int, seen: Seen | None) -> int | None:
        """The version that a read shows; None if the read may not show it."""
        if seen is not None:
            is_known = history.states.get(seen.version) == seen.stamps
            is_allowed = seen.version >= floor or seen.version in history.unknown
            return seen.version if is_known and is_allowed else None
        # A missing item has no version, so the earliest allowed one is assumed.
        return min(
            (
                version
                for version, state in history.states.items()
                if state is None and (version >= floor or version in history.unknown)
            ),
            default=None,
        )

    def is_current(self, number: int, seen: Seen | None) -> bool:
        """Whether a consistent read may show this item now."""
        history = self._history(number)
        return self._shown(history, history.floor, seen) is not None

    def _find(
        self, history: _History, floor: int, number: int, seen: Seen | None, *, at_end: bool
    ) -> None:
        kind: Kind = "lost" if at_end else "stale"
        what = "nothing"
        if seen is not None:
            what = f"version {seen.version}"
            if seen.version in history.refused:
                kind = "refused"
            elif seen.version >= floor:
                kind = "foreign"
                what += f" with fields of versions {seen.stamps}"
        text = f"showed {what}; versions {floor} to {history.last} were allowed"
        self.findings.note(Finding(kind, number, text))

    def strange(self, number: int, item: object) -> None:
        """Record that a read returned an unknown item, or one that was not requested."""
        self.findings.reads_checked += 1
        self.findings.note(Finding("foreign", number, f"showed {item!r:.300}"))

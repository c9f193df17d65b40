"""The possible findings of a check, and how many of them are reported."""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal, get_args

from msgspec import Struct, field

Kind = Literal["lost", "stale", "foreign", "refused", "condition", "torn"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MEANINGS: Final[dict[Kind, str]] = {
    "lost": "an acknowledged write is missing after the run",
    "stale": "a read returned an older version than the last one acknowledged or read before it",
    "foreign": "a read returned data that no client wrote",
    "refused": "a read returned a write that the server had refused",
    "condition": "a condition on the last acknowledged version failed",
    "torn": "a read returned a part of a transaction",
}
_EXAMPLES: Final = 20


class Finding(Struct, frozen=True):
    """An answer to a read or write that no order of the writes can explain."""

    kind: Kind
    item: int
    text: str


class Findings(Struct):
    """The number of findings of each kind, and the first findings."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: list[Finding] = field(default_factory=list)
    reads_checked: int = 0
    writes_acknowledged: int = 0
    writes_unknown: int = 0
    # Items unread after the run, because the server did not answer.
    items_unread: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether all items were read, without any finding."""
        return not self.counts and not self.items_unread

    def note(self, finding: Finding) -> None:
        """Count a finding."""
        self.counts[finding.kind] = self.counts.get(finding.kind, 0) + 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(finding)

    def add(self, other: Findings) -> None:
        """Add all findings of another worker."""
        self.counts = dict(Counter(self.counts) + Counter(other.counts))
        self.examples = (self.examples + other.examples)[:_EXAMPLES]
        self.reads_checked += other.reads_checked
        self.writes_acknowledged += other.writes_acknowledged
        self.writes_unknown += other.writes_unknown
        self.items_unread += other.items_unread

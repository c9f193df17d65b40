"""Whether transactions are seen whole: a TransactGetItems shows all of another one, or nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple


class Torn(NamedTuple):
    """An item that is behind another one, although one transaction wrote both."""

    number: int
    text: str


class Transactions:
    """The last transaction of each item, as the versions that it wrote."""

    def __init__(self) -> None:
        self._last: dict[int, Mapping[int, int]] = {}

    def begin(self, versions: Mapping[int, int]) -> None:
        """A transaction is about to be sent that writes these versions, by item."""
        for number in versions:
            self._last[number] = versions

    def items_beside(self, number: int) -> Collection[int]:
        """What the last transaction of an item wrote, the item itself included; else nothing."""
        return self._last.get(number, {}).keys()

    def torn(self, shown: Mapping[int, int]) -> Iterable[Torn]:
        """What one TransactGetItems has shown, versions by item, of only a part of a transaction.

        An item may be newer than the transaction, but not older. One that is not there may have
        been deleted since.
        """
        for number, version in shown.items():
            versions = self._last.get(number, {})
            if versions.get(number) != version:
                continue
            for other, written in versions.items():
                if shown.get(other, written) < written:
                    text = f"at version {shown[other]}, while item {number} is at {version}"
                    yield Torn(other, f"{text}, which came with version {written} of this one")

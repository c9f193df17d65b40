"""Checks that a TransactGetItems shows all of another transaction, or none of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple


class Torn(NamedTuple):
    """An item shown without the effect of a transaction whose other effects were shown."""

    number: int
    text: str


class Transactions:
    """The last transaction of each item, as the versions that it wrote."""

    def __init__(self) -> None:
        self._last: dict[int, Mapping[int, int]] = {}

    def begin(self, versions: Mapping[int, int]) -> None:
        """Record that a transaction with these versions by item is about to be sent."""
        for number in versions:
            self._last[number] = versions

    def items_beside(self, number: int) -> Collection[int]:
        """The items of the last transaction of an item, including itself; empty without one."""
        return self._last.get(number, {}).keys()

    def torn(self, shown: Mapping[int, int]) -> Iterable[Torn]:
        """The items of ``shown`` that are older than a write of a transaction that it shows.

        ``shown`` has the versions that one TransactGetItems returned. An item may be newer than
        that write, because of a later write. A missing item may have been deleted since.
        """
        for number, version in shown.items():
            versions = self._last.get(number, {})
            if versions.get(number) != version:
                continue
            for other, written in versions.items():
                if shown.get(other, written) < written:
                    text = f"at version {shown[other]}, while item {number} is at {version}"
                    both = f"one transaction wrote version {written} and that version"
                    yield Torn(other, f"{text}; {both}")

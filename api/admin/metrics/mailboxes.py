"""Number of messages in the actors' mailboxes, by kind of actor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from dynactor.actors.database.database import Database
from dynactor.actors.table.table import Table


class Mailboxes:
    """The sum and the maximum of each kind, over all tables."""

    def __init__(self) -> None:
        self._sums: dict[str, int] = {}
        self._longest: dict[str, int] = {}

    def add_database(self, database: Database) -> None:
        """Add the single actors of a database. All kinds of actors are shown from now on."""
        self._add("table_partition", ())
        self._add("index_partition", ())
        for kind, length in database.mailbox_lengths().items():
            self._add(kind, (length,))

    def add_table(self, table: Table) -> None:
        """Add the partitions of a table and of its global indexes."""
        self._add("table_partition", table.partitions.mailbox_lengths())
        for index in table.followers.indexes.values():
            self._add("index_partition", index.partitions.mailbox_lengths())

    def _add(self, kind: str, lengths: Iterable[int]) -> None:
        lengths = tuple(lengths)
        self._sums[kind] = self._sums.get(kind, 0) + sum(lengths)
        self._longest[kind] = max(self._longest.get(kind, 0), *lengths, 0)

    def metrics(self) -> Iterator[Metric]:
        """The sum and the longest mailbox of each kind of actor."""
        sums = GaugeMetricFamily(
            "dynactor_mailbox_messages",
            "Messages that wait in mailboxes, by kind of actor.",
            labels=("actor",),
        )
        longest = GaugeMetricFamily(
            "dynactor_longest_mailbox_messages",
            "Messages that wait in the longest mailbox of a kind of actor. A partition's mailbox "
            "takes 10,000; a full one throttles requests.",
            labels=("actor",),
        )
        for kind, count in self._sums.items():
            sums.add_metric((kind,), count)
            longest.add_metric((kind,), self._longest[kind])
        yield from (sums, longest)

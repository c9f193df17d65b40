"""The item numbers that a worker reads, and those that it inserts."""

from __future__ import annotations

from dynactor.load.work.plan import Plan


class KeySpace:
    """Maps places, the numbers below ``count``, to item numbers; ``count`` grows with inserts.

    Without checks, the workers share the items that existed before the run, and each worker adds
    other items. With checked reads, each worker has separate item collections, so no other worker
    changes them. Invariant: the item of every place was inserted, or its insert failed.
    """

    def __init__(self, plan: Plan, worker: int) -> None:
        self._collection_items = plan.collection_items
        self._workers = plan.workers
        self._worker = worker
        self._shared = 0 if plan.verify else plan.keys
        self.initial = plan.keys // plan.workers if plan.verify else plan.keys
        self.count = self.initial
        self._next = self.count
        self._ended: set[int] = set()

    def number(self, place: int) -> int:
        """The item number of a place."""
        if place < self._shared:
            return place
        # Collections are assigned to the workers round-robin.
        collection, position = divmod(place - self._shared, self._collection_items)
        mine = collection * self._workers + self._worker
        return self._shared + mine * self._collection_items + position

    def owns(self, number: int) -> bool:
        """Whether no other worker writes an item."""
        if number < self._shared:
            return self._workers == 1
        collection = (number - self._shared) // self._collection_items
        return collection % self._workers == self._worker

    def insert(self) -> int:
        """A place without an item."""
        self._next += 1
        return self._next - 1

    def inserted(self, place: int) -> None:
        """Record the answer to an insert. The place can be drawn when no earlier insert runs."""
        self._ended.add(place)
        while self.count in self._ended:
            self._ended.remove(self.count)
            self.count += 1

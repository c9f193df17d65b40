"""The figures of a store for the metrics."""

from __future__ import annotations

from msgspec import Struct

from dynactor.model.latency_histogram import LatencyHistogram


class EngineFigures(Struct, frozen=True):
    """The sizes of an engine, in bytes. ``free_bytes`` is None without a disk."""

    table_bytes: int
    log_bytes: int
    memtable_bytes: int
    cache_bytes: int
    free_bytes: int | None


class ReadStoreFigures(Struct, frozen=True):
    """The state of the standby for reads, and how many reads the primary answered in its place."""

    is_used: bool
    fallbacks: int


class StoreFigures(Struct, frozen=True):
    """The present state of a store, and its syncs since it was opened.

    ``full_disk_refusals`` is how many commits were refused because the disk is full.
    ``refusal`` is the name of the error that commits are refused with, empty if they are not.
    ``waiting_commits`` are accepted and not durable yet; None if each commit is durable when it is
    accepted. ``waiting_reads`` wait for a thread. ``commits_in_doubt`` have an unknown outcome and
    may still be written. ``read_store``: None without ``--read-store``.
    """

    engine: EngineFigures
    syncs: LatencyHistogram
    refusal: str
    full_disk_refusals: int = 0
    waiting_commits: int | None = 0
    waiting_reads: int = 0
    commits_in_doubt: int = 0
    read_store: ReadStoreFigures | None = None

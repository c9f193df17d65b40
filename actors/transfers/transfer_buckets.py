"""The buckets that exports, imports and bulk operations share."""

from __future__ import annotations

from dynactor.actors.parts.part import Part, Parts
from dynactor.storage.buckets.open_buckets import Buckets


class TransferBuckets(Part):
    """Opens the buckets of the settings; each is opened once."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.buckets = Buckets(parts.settings.buckets, parts.settings.bucket_umask)

"""The end of a transfer whose bucket fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dynactor.actors.followers.outside import OutsideFailed
from dynactor.storage.buckets.bucket import BucketError


class BucketUse:
    """The common base of transfers; ``failure`` is the bucket's error that ended the transfer."""

    failure: BucketError | None = None

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except BucketError as error:
            self.failure = error
            raise OutsideFailed(error.message) from error

"""A bucket for one caller, whose policies decide on each object."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import structlog

from dynactor.model.access.bucket_grant import READ, WRITE, BucketGrant
from dynactor.storage.buckets.bucket import Bucket, BucketError, ObjectWriter, StoredObject

_log = structlog.get_logger("storage")


class GuardedBucket:
    """The objects of a bucket that a caller may use.

    The list of objects is not checked here, because the request is refused unless its caller may
    list its prefix.
    """

    def __init__(self, bucket: Bucket, name: str, grant: BucketGrant) -> None:
        self._bucket = bucket
        self._name = name
        self._grant = grant
        # Actions that were logged. An import of many objects logs each action once.
        self._logged: set[str] = set()

    @property
    def most_object_bytes(self) -> int:
        """See the port."""
        return self._bucket.most_object_bytes

    async def objects(self, prefix: str) -> list[StoredObject]:
        """The objects whose keys begin with this prefix; raises as the port."""
        return await self._bucket.objects(prefix)

    def read(self, key: str) -> AsyncGenerator[bytes, None]:
        """The content of an object; raises as the port, or if the caller may not read it."""
        self._check(READ, key)
        return self._bucket.read(key)

    async def put(self, key: str, data: bytes) -> None:
        """Write an object; raises as the port, or if the caller may not write it."""
        self._check(WRITE, key)
        await self._bucket.put(key, data)

    async def writer(self, key: str) -> ObjectWriter:
        """Begin an object; raises as the port, or if the caller may not write it."""
        self._check(WRITE, key)
        return await self._bucket.writer(key)

    def _check(self, action: str, key: str) -> None:
        denial = self._grant.denial(action, self._name, key)
        if denial is None:
            return
        if not self._grant.is_observed:
            raise BucketError("S3AccessDenied", denial)
        if action not in self._logged:
            self._logged.add(action)
            _log.warning(
                "action_not_allowed", action=action, bucket=self._name, key=key, message=denial
            )

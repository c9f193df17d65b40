"""The buckets of a server, by the names that requests use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from dynactor.model.access.bucket_grant import BucketGrant
from dynactor.storage.buckets.bucket import Bucket, BucketError
from dynactor.storage.buckets.directory_bucket import DirectoryBucket
from dynactor.storage.buckets.guarded_bucket import GuardedBucket
from dynactor.storage.buckets.s3_bucket import S3Bucket, S3Missing

_FILE: Final = "file"
_S3: Final = "s3"


class BadBucketUrl(Exception):
    """A URL does not name a bucket; the message says why."""


class Buckets:
    """Opens buckets by name. A name without a URL is an unknown bucket."""

    def __init__(self, urls: Mapping[str, str], umask: int | None = None) -> None:
        """``umask`` applies to new objects of directories instead of the process's."""
        self._urls = urls
        self._umask = umask
        self._open: dict[str, Bucket] = {}

    def named(self, name: str, grant: BucketGrant | None) -> Bucket:
        """The bucket of this name, with the objects that ``grant`` allows; None allows all.

        Raises ``BucketError`` if no bucket has this name.
        """
        url = self._urls.get(name)
        if url is None:
            raise BucketError("S3NoSuchBucket", "The specified bucket does not exist")
        if name not in self._open:
            self._open[name] = open_bucket(url, self._umask)
        bucket = self._open[name]
        return bucket if grant is None else GuardedBucket(bucket, name, grant)


def open_bucket(url: str, umask: int | None = None) -> Bucket:
    """The bucket at a URL; nothing is read yet. Raises ``BadBucketUrl``."""
    parts = urlsplit(url)
    if parts.scheme == _FILE:
        if parts.netloc or not parts.path.startswith("/"):
            raise BadBucketUrl("give an absolute path, as in file:///var/exports")
        return DirectoryBucket(Path(unquote(parts.path)), umask)
    if parts.scheme == _S3:
        if not parts.netloc or parts.query or parts.fragment:
            raise BadBucketUrl(
                "give a bucket and, if wanted, a prefix, as in s3://backups/dynamodb"
            )
        try:
            return S3Bucket(parts.netloc, unquote(parts.path))
        except S3Missing:
            raise BadBucketUrl("s3:// needs the extra dynactor[s3]") from None
    raise BadBucketUrl("give file:// and an absolute path, or s3:// and a bucket")

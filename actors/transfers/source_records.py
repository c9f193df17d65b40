"""Reads the records of one file of an import or bulk operation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from itertools import islice
from typing import Final

from dynactor.actors.transfers.import_files import DAMAGED, OTHER_COMPRESSION, ImportFile
from dynactor.model.files.records import (
    BadContent,
    Bounded,
    Fault,
    Format,
    JsonLines,
    Record,
    Records,
)
from dynactor.storage.buckets.bucket import Bucket, BucketError
from dynactor.storage.buckets.decompression import (
    BadFile,
    Compression,
    OtherCompression,
    ReadObject,
    ZstdMissing,
)
from dynactor.storage.buckets.ion_records import IonDecoder, IonMissing

# A thread decodes this number of records at a time.
_BATCH_RECORDS: Final = 64


class SourceRecords:
    """The records of one file."""

    def __init__(self, bucket: Bucket, file: ImportFile, compression: Compression) -> None:
        self._file = file
        self._reading = ReadObject(bucket, file.key, compression)

    @property
    def size_bytes(self) -> int:
        """The bytes of the object that were read so far."""
        return self._reading.size_bytes

    async def batches(self, decoded: Format) -> AsyncGenerator[list[Record | Fault], None]:
        """The records, decoded in a thread. Use them inside ``reporting``."""
        async with aclosing(self._reading.parts()) as parts:
            async for part in parts:
                async for batch in _batches(decoded.feed(part)):
                    yield batch
        async for batch in _batches(decoded.end()):
            yield batch

    def check(self, record_count: int) -> None:
        """Compare the file, read to its end, with a manifest's line; raises ``BucketError``."""
        if self._file.listed is not None:
            check_listed(self._file, self._reading.md5_checksum, record_count)


async def _batches(records: Records) -> AsyncGenerator[list[Record | Fault], None]:
    is_more = True
    while is_more:
        batch: list[Record | Fault] = []
        try:
            await asyncio.to_thread(_take, records, batch)
        except BadContent:
            # The records before the bad content count.
            yield batch
            raise
        is_more = len(batch) == _BATCH_RECORDS
        yield batch


def _take(records: Records, batch: list[Record | Fault]) -> None:
    for record in islice(records, _BATCH_RECORDS):
        batch.append(record)  # noqa: PERF402 - an error keeps the records before it


def check_listed(file: ImportFile, md5_checksum: str, record_count: int) -> None:
    """Compare a file, read to its end, with a manifest's line, if any; raises ``BucketError``."""
    key, listed = file.key, file.listed
    if listed is None:
        return
    if listed.md5_checksum != md5_checksum:
        raise BucketError(DAMAGED, f"{key}: the checksum of the file is wrong")
    if listed.item_count != record_count:
        raise BucketError(
            DAMAGED,
            f"{key} has {record_count} items, the manifest says {listed.item_count}",
        )


def lines_or_ion(input_format: str) -> Format:
    """The decoder of DynamoDB JSON or Ion; raises ``IonMissing``."""
    return Bounded(JsonLines() if input_format == "DYNAMODB_JSON" else IonDecoder())


@contextmanager
def reporting(key: str) -> Iterator[None]:
    """Report errors in the content of a file, or a missing package for it, as ``BucketError``."""
    try:
        yield
    except OtherCompression as error:
        raise BucketError(OTHER_COMPRESSION, f"{key}: {error}") from error
    except (BadFile, BadContent) as error:
        raise BucketError(DAMAGED, f"{key}: {error}") from error
    except IonMissing:
        raise BucketError(
            "FormatNotSupported", "ION needs the extra dynactor[ion] of the server"
        ) from None
    except ZstdMissing:
        raise BucketError(
            "CompressionNotSupported", "ZSTD needs the extra dynactor[zstd] of the server"
        ) from None

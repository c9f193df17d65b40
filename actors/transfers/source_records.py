"""Reads the records of one file of an import or bulk operation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

from dynactor.actors.transfers.import_files import DAMAGED, ImportFile
from dynactor.model.transfers.records import BadContent, Format, JsonLines, Records
from dynactor.storage.buckets.bucket import Bucket, BucketError
from dynactor.storage.buckets.decompression import BadFile, Compression, ReadObject, ZstdMissing
from dynactor.storage.buckets.ion_records import Ion, IonMissing


class SourceRecords:
    """The records of one file."""

    def __init__(self, bucket: Bucket, file: ImportFile, compression: Compression) -> None:
        self._file = file
        self._reading = ReadObject(bucket, file.key, compression)

    @property
    def size_bytes(self) -> int:
        """The bytes of the object that were read so far."""
        return self._reading.size_bytes

    async def parts(self, decoded: Format) -> AsyncGenerator[Records, None]:
        """The records, in parts. Use up each part, inside ``reporting``."""
        async with aclosing(self._reading.parts()) as parts:
            async for part in parts:
                yield decoded.feed(part)
        yield decoded.end()

    def check(self, record_count: int) -> None:
        """Compare the file, which was read to its end, with its line in a manifest.

        Raises:
            BucketError: the file differs.
        """
        if self._file.listed is not None:
            check_listed(self._file, self._reading.md5_checksum, record_count)


def check_listed(file: ImportFile, md5_checksum: str, record_count: int) -> None:
    """Compare a file, which was read to its end, with its line in a manifest, if there is one.

    Raises:
        BucketError: the file differs.
    """
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
    return JsonLines() if input_format == "DYNAMODB_JSON" else Ion()


@contextmanager
def reporting(key: str) -> Iterator[None]:
    """Report errors in the content of a file.

    Raises:
        BucketError: the file is damaged, or a package for it is missing.
    """
    try:
        yield
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

"""The files of an import or bulk operation, and what an export's manifests say about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from msgspec import MsgspecError

from dynactor.actors.transfers import manifests
from dynactor.actors.transfers.manifests import DataFile, ExportSummary
from dynactor.model.limits import IMPORT_OBJECTS
from dynactor.storage.buckets.bucket import Bucket, BucketError, read_whole

DAMAGED: Final = "SourceDamaged"
# The file is compressed in another way than the request says.
OTHER_COMPRESSION: Final = "OtherCompression"
INVALID: Final = "SourceInvalid"

_MANIFEST_NAMES: Final = tuple(
    f"{name}{ending}"
    for name in (manifests.SUMMARY, manifests.FILES)
    for ending in (".json", *manifests.CHECKSUMS)
)


class ImportFile(NamedTuple):
    """A file to import; ``listed`` is its line in a manifest."""

    key: str
    size_bytes: int
    listed: DataFile | None = None


async def listed_files(bucket: Bucket, prefix: str, input_format: str) -> list[ImportFile]:
    """The files below a prefix, in the order in which they are imported; maybe none.

    The files of a whole export are those that its manifest lists. Raises ``BucketError`` if the
    bucket can't be read, or a manifest is wrong.
    """
    sizes = dict(await bucket.objects(prefix))
    lists = [key for key in sizes if _name(key) == f"{manifests.FILES}.json"]
    if len(lists) > 1:
        raise BucketError(INVALID, f"More than one export has the prefix: {', '.join(lists[:2])}")
    if lists:
        files = await _exported_files(bucket, lists[0], sizes, input_format)
    else:
        files = [ImportFile(key, size) for key, size in sizes.items() if _is_data(key)]
    if len(files) > IMPORT_OBJECTS:
        raise BucketError(INVALID, f"More than {IMPORT_OBJECTS:,} objects have the prefix")
    return files


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _is_data(key: str) -> bool:
    name = _name(key)
    return name not in _MANIFEST_NAMES and name != manifests.STARTED


async def _exported_files(
    bucket: Bucket, list_key: str, sizes: Mapping[str, int], input_format: str
) -> list[ImportFile]:
    folder = list_key.removesuffix(f"{manifests.FILES}.json")
    data = await _checked(bucket, f"{folder}{manifests.FILES}", sizes)
    try:
        listed = manifests.read_files_manifest(data)
    except MsgspecError as error:
        raise BucketError(INVALID, f"{list_key} is not a list of files: {error}") from error
    summary_key = f"{folder}{manifests.SUMMARY}.json"
    if summary_key not in sizes:
        raise BucketError(INVALID, f"The export is not complete: {summary_key} is missing")
    try:
        summary = manifests.read_summary(await _checked(bucket, summary_key[:-5], sizes))
    except MsgspecError as error:
        raise BucketError(INVALID, f"{summary_key} is not a summary: {error}") from error
    _check_summary(summary, summary_key, listed, input_format)
    found = [(_found(each, folder, sizes), each) for each in listed]
    return [ImportFile(key, sizes[key], each) for key, each in found]


async def _checked(bucket: Bucket, name: str, keys: Collection[str]) -> bytes:
    """The content of a manifest, compared with its checksum if there is one."""
    data = await read_whole(bucket, f"{name}.json")
    for ending in manifests.CHECKSUMS:
        if f"{name}{ending}" in keys:
            stored = (await read_whole(bucket, f"{name}{ending}")).decode(errors="replace").strip()
            if stored != manifests.checksum(data):
                raise BucketError(DAMAGED, f"The checksum of {name}.json is wrong")
    return data


def _check_summary(
    summary: ExportSummary, key: str, listed: list[DataFile], input_format: str
) -> None:
    if summary.export_type != "FULL_EXPORT" or summary.output_view is not None:
        raise BucketError(INVALID, f"{key}: an incremental export can't be imported")
    if summary.output_format != input_format:
        raise BucketError(
            INVALID, f"{key}: the export has format {summary.output_format}, not {input_format}"
        )
    total = sum(each.item_count for each in listed)
    if summary.item_count != total:
        raise BucketError(
            DAMAGED, f"{key} counts {summary.item_count} items, the list of files {total}"
        )


def _found(listed: DataFile, folder: str, keys: Collection[str]) -> str:
    """The key of a listed file, which may have been moved together with its manifest."""
    for key in (listed.data_file_s3_key, f"{folder}data/{_name(listed.data_file_s3_key)}"):
        if key in keys:
            return key
    raise BucketError("S3NoSuchKey", f"The listed file {listed.data_file_s3_key} does not exist")

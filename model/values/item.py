"""Items: attribute names and their checked values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from dynactor.model.errors import ValidationException
from dynactor.model.limits import ATTRIBUTE_NAME_BYTES, ITEM_SIZE_BYTES
from dynactor.model.values import attribute_value
from dynactor.model.values.attribute_value import AttributeValue

Item: TypeAlias = dict[str, AttributeValue]

TOO_LARGE_TO_PUT = "Item size has exceeded the maximum allowed size"
TOO_LARGE_AFTER_UPDATE = "Item size to update has exceeded the maximum allowed size"

# A character has at most 4 bytes: a name of so many is within the limit.
_SHORT_NAME_CHARACTERS: Final = ATTRIBUTE_NAME_BYTES // 4

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, dict[str, Any]]).decode


def check(item: dict[str, Any]) -> int:
    """Check an item fresh from the wire, make it canonical in place, return its size in bytes.

    Raises:
        ValidationException, SerializationException: as ``attribute_value.check``; the item's
            own size is not checked here, see ``check_size``.
    """
    # All names at once; only where they are long each is looked at, between values as they come.
    names = "".join(item)
    size = len(names) if names.isascii() else len(names.encode())
    may_be_long = len(names) > _SHORT_NAME_CHARACTERS
    for name, value in item.items():
        # Most attributes are text: these are checked without a call.
        text = value.get("S") if type(value) is dict and len(value) == 1 else None
        if type(text) is str and text.isascii():
            size += len(text)
        else:
            size += attribute_value.check(value)
        if may_be_long:
            attribute_value.name_size_bytes(name)
    attribute_value.check_names(item)
    return size


def check_size(item_size_bytes: int, message: str = TOO_LARGE_TO_PUT) -> None:
    """Refuse an item over 400 KB.

    Raises:
        ValidationException: the item is too large.
    """
    if item_size_bytes > ITEM_SIZE_BYTES:
        raise ValidationException(message)


def size_bytes(item: Item) -> int:
    """The DynamoDB size of a checked item: names in UTF-8 and values."""
    names = "".join(item)
    size = len(names) if names.isascii() else len(names.encode())
    for value in item.values():
        text = value.get("S")
        if text is not None and text.isascii():
            size += len(text)
        else:
            size += attribute_value.size_bytes(value)
    return size


def encode(item: Item) -> bytes:
    """The item as compact DynamoDB JSON, ready to be spliced into an answer."""
    return _encode(item)


def decode(data: bytes | memoryview) -> Item:
    """The item of such bytes; they are our own and are not checked again."""
    return _decode(data)


def part_decoder(names: Sequence[str]) -> Callable[[bytes], Item]:
    """What decodes at least these attributes of an item, of some in a third of the time of all."""
    fields = [f"attribute_{number}" for number in range(len(names))]
    try:
        shape = msgspec.defstruct(
            "Part",
            [(field, dict[str, Any] | None, None) for field in fields],
            rename=dict(zip(fields, names, strict=True)),
            gc=False,
        )
    except ValueError:
        # msgspec knows no fields with quotes, backslashes or control characters in their names.
        return decode
    decode_part = msgspec.json.Decoder(shape).decode

    def decode_some(data: bytes) -> Item:
        values = msgspec.structs.astuple(decode_part(data))
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}

    return decode_some

"""The ids of exports, imports and bulk operations, and the folders of their objects."""

from __future__ import annotations

from typing import Final

_TIME_DIGITS: Final = 14


def transfer_id(epoch_milliseconds: int, suffix: str) -> str:
    """The end of the ARN: the request's time and 8 hexadecimal digits (Developer Guide)."""
    return f"{epoch_milliseconds:0{_TIME_DIGITS}}-{suffix}"


def transfer_folder(prefix: str | None, an_id: str) -> str:
    """The prefix of the keys of all objects that an export or bulk operation writes."""
    return f"{transfer_prefix(prefix)}{an_id}"


def transfer_prefix(prefix: str | None) -> str:
    """The prefix of the keys of all objects that are written under the prefix of a request."""
    prefix = (prefix or "").strip("/")
    return f"{prefix}/AWSDynamoDB/" if prefix else "AWSDynamoDB/"

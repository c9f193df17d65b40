"""Rules for enabling and disabling a table's DynamoDB stream.

Messages are DynamoDB's if the API reference or reports of users show them, else DynamoDB Local's.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from dynactor.model.definitions.table import StreamSettings, StreamViewType
from dynactor.model.errors import ValidationException, invalid_value


class StreamChange(Struct, frozen=True):
    """A StreamSpecification. A new stream gets the ``label``, if no other stream has it."""

    enabled: bool
    view_type: StreamViewType | None = None
    label: str = ""


def check(change: StreamChange) -> None:
    """Check the part of a StreamSpecification without its table; raises ``ValidationException``."""
    if change.enabled and change.view_type is None:
        raise invalid_value("If stream is being enabled then UpdateViewType is required")
    if not change.enabled and change.view_type is not None:
        raise ValidationException(
            "Invalid StreamViewType: Stream StreamEnabled was false but a StreamViewType was "
            "present."
        )


def new_table_stream(change: StreamChange | None) -> StreamSettings | None:
    """The stream of a new table.

    Raises as ``check``, with CreateTable's own message for a disabled stream with a view type.
    """
    if change is None:
        return None
    if not change.enabled and change.view_type is not None:
        raise invalid_value(
            "Table is being created with a stream disabled, UpdateViewType should not be specified"
        )
    check(change)
    return None if change.view_type is None else StreamSettings(change.label, change.view_type)


def changed(
    table_name: str, current: StreamSettings | None, change: StreamChange
) -> StreamSettings:
    """The stream after a change that passed ``check``; raises ``ValidationException`` without one.

    To change the view type, a client disables the stream and enables a new one.
    """
    if change.view_type is not None:
        if current is not None and current.enabled:
            raise ValidationException(
                f"Table already has an enabled stream: TableName: {table_name}"
            )
        return StreamSettings(change.label, change.view_type)
    if current is None or not current.enabled:
        raise ValidationException("Table has no stream to disable")
    return replace(current, enabled=False)

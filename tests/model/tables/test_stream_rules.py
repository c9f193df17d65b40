"""Streams are enabled with a view, disabled without, and have unique labels."""

from __future__ import annotations

import pytest

from dynactor.model.definitions.table import StreamSettings
from dynactor.model.errors import ValidationException
from dynactor.model.tables.stream_rules import StreamChange, changed, check, new_table_stream

ENABLE = StreamChange(enabled=True, view_type="NEW_IMAGE", label="second")
DISABLE = StreamChange(enabled=False)
ENABLED = StreamSettings("first", "KEYS_ONLY")
DISABLED = StreamSettings("first", "KEYS_ONLY", enabled=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            StreamChange(enabled=True),
            (
                "One or more parameter values were invalid: If stream is being enabled then "
                "UpdateViewType is required"
            ),
        ),
        (
            StreamChange(enabled=False, view_type="KEYS_ONLY"),
            (
                "Invalid StreamViewType: Stream StreamEnabled was false but a StreamViewType was "
                "present."
            ),
        ),
    ],
)
def test_a_view_type_is_accepted_only_with_an_enabled_stream(change: StreamChange, message: str):
    with pytest.raises(ValidationException) as caught:
        check(change)
    assert caught.value.message == message


def test_a_new_table_with_a_disabled_stream_may_have_no_view_type():
    with pytest.raises(ValidationException) as caught:
        new_table_stream(StreamChange(enabled=False, view_type="KEYS_ONLY"))
    assert caught.value.message == (
        "One or more parameter values were invalid: Table is being created with a stream "
        "disabled, UpdateViewType should not be specified"
    )


def test_a_table_is_made_with_a_stream_or_without():
    assert new_table_stream(None) is None
    assert new_table_stream(DISABLE) is None
    assert new_table_stream(ENABLE) == StreamSettings("second", "NEW_IMAGE")


@pytest.mark.parametrize("current", [None, DISABLED])
def test_a_stream_is_enabled_if_the_table_has_none(current: StreamSettings | None):
    assert changed("table", current, ENABLE) == StreamSettings("second", "NEW_IMAGE")
    with pytest.raises(ValidationException, match="Table has no stream to disable"):
        changed("table", current, DISABLE)


def test_a_disabled_stream_keeps_its_label():
    assert changed("table", ENABLED, DISABLE) == DISABLED


def test_an_enabled_stream_is_not_enabled_again():
    with pytest.raises(ValidationException) as caught:
        changed("table", ENABLED, ENABLE)
    assert caught.value.message == "Table already has an enabled stream: TableName: table"

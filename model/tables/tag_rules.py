"""Rules for the tags of a table: number, characters, and reserved keys.

The API layer checks lengths. Source: "Tagging restrictions". If AWS's message is unknown, the
message is our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.limits import TAGS_PER_RESOURCE

Tags: TypeAlias = tuple[tuple[str, str], ...]

# The tag that sets how the table's throughput limits are applied. Other values are refused, because
# they must be typing errors.
THROTTLING_TAG: Final = "dynactor:throttling"
_THROTTLING_VALUES: Final = ("auto", "enforce", "observe", "off")
_RESERVED_PREFIX: Final = "aws:"
# Allowed in addition to letters, white space and digits of any script.
_PUNCTUATION: Final = "+-=._:/@"


def added(current: Tags, tags: Sequence[tuple[str, str]]) -> Tags:
    """The tags after adding some, or changing their values; raises ``ValidationException``."""
    keys = [key for key, _ in tags]
    if len(set(keys)) < len(keys):
        raise invalid_value("Duplicate tag keys in Tags")
    for key, value in tags:
        _check_characters("key", key)
        _check_characters("value", value)
    for key in keys:
        if key.lower().startswith(_RESERVED_PREFIX):
            raise invalid_value(f"Tag keys that begin with {_RESERVED_PREFIX} are reserved: {key}")
    throttling = dict(tags).get(THROTTLING_TAG, "auto")
    if throttling not in _THROTTLING_VALUES:
        raise invalid_value(
            f"The tag {THROTTLING_TAG} must be one of {', '.join(_THROTTLING_VALUES)}: {throttling}"
        )
    merged = {**dict(current), **dict(tags)}
    if len(merged) > TAGS_PER_RESOURCE:
        raise ValidationException(
            "Number of Tags exceed the current limit for the provided ResourceArn"
        )
    return tuple(merged.items())


def removed(current: Tags, keys: Sequence[str]) -> Tags:
    """The tags without those keys; a missing key is not an error."""
    return tuple((key, value) for key, value in current if key not in keys)


def _check_characters(part: str, text: str) -> None:
    for character in text:
        if character in _PUNCTUATION or character.isalnum() or character.isspace():
            continue
        raise invalid_value(
            f"The tag {part} {text} has a character that is not allowed. Allowed are letters, "
            f"white space, digits and {' '.join(_PUNCTUATION)}"
        )

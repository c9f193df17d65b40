"""The tags of a table: how many, of which characters, and which keys are not for users.

Lengths are the API's constraints and are checked with them. Source: "Tagging restrictions". Where
AWS's message is not known, the words are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from dynactor.model.errors import ValidationException
from dynactor.model.limits import TAGS_PER_RESOURCE
from dynactor.model.tables.schema_rules import INVALID

Tags: TypeAlias = tuple[tuple[str, str], ...]

# How the throughput limits of the table are kept; other values would be typing errors.
THROTTLING_TAG: Final = "dynactor:throttling"
_THROTTLING_VALUES: Final = ("auto", "enforce", "observe", "off")
_RESERVED_PREFIX: Final = "aws:"
# Beside them letters, white space and digits of any script are allowed.
_PUNCTUATION: Final = "+-=._:/@"


def added(current: Tags, tags: Sequence[tuple[str, str]]) -> Tags:
    """The tags after some were added; a key that is there gets the new value.

    Raises:
        ValidationException: a key comes twice or is AWS's own, a key or value has a character
            that is not allowed, there are too many in all, or the tag by which throttling is set
            has a value that says nothing.
    """
    keys = [key for key, _ in tags]
    if len(set(keys)) < len(keys):
        raise ValidationException(f"{INVALID}Duplicate tag keys in Tags")
    for key, value in tags:
        _check_characters("key", key)
        _check_characters("value", value)
    for key in keys:
        if key.lower().startswith(_RESERVED_PREFIX):
            raise ValidationException(
                f"{INVALID}Tag keys that begin with {_RESERVED_PREFIX} are reserved: {key}"
            )
    throttling = dict(tags).get(THROTTLING_TAG, "auto")
    if throttling not in _THROTTLING_VALUES:
        raise ValidationException(
            f"{INVALID}The tag {THROTTLING_TAG} must be one of "
            f"{', '.join(_THROTTLING_VALUES)}: {throttling}"
        )
    merged = {**dict(current), **dict(tags)}
    if len(merged) > TAGS_PER_RESOURCE:
        raise ValidationException(
            "Number of Tags exceed the current limit for the provided ResourceArn"
        )
    return tuple(merged.items())


def removed(current: Tags, keys: Sequence[str]) -> Tags:
    """The tags without those keys; a key that is not there is no error."""
    return tuple((key, value) for key, value in current if key not in keys)


def _check_characters(part: str, text: str) -> None:
    for character in text:
        if character in _PUNCTUATION or character.isalnum() or character.isspace():
            continue
        raise ValidationException(
            f"{INVALID}The tag {part} {text} has a character that is not allowed. Allowed are "
            f"letters, white space, digits and {' '.join(_PUNCTUATION)}"
        )

"""Operations that change nothing, recognized by the first word of their names."""

from __future__ import annotations

from typing import Final

_VERBS: Final = ("BatchGet", "Describe", "Get", "List", "Query", "Scan", "TransactGet")


def is_read(target: str) -> bool:
    """Whether the operation of an X-Amz-Target header changes nothing, whatever its body is."""
    return target.partition(".")[2].startswith(_VERBS)

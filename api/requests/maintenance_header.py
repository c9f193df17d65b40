"""The header that marks a request as sent by a tool instead of an application.

Such requests are answered, throttled and charged like any others. ``dynactor advise`` does not
count their scans, because its advice is about applications.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NAME: Final = "x-dynactor-maintenance"

# The header of a tool's requests.
HEADER: Final = {_NAME: "true"}


def is_maintenance(headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers, in lower case, comes from a tool."""
    return headers.get(_NAME, "").strip().lower() == "true"

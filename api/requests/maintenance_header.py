"""A header by which a tool says that its requests are no use that an application makes of a table.

They are answered, limited and paid for as any others. Advice (``dynactor advise``) is on what
applications do: it does not count what such a request scans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NAME: Final = "x-dynactor-maintenance"

# What a tool's requests have beside their other headers.
HEADER: Final = {_NAME: "true"}


def is_maintenance(headers: Mapping[str, str]) -> bool:
    """Whether a request with these headers, named in lower case, is a tool's."""
    return headers.get(_NAME, "").strip().lower() == "true"

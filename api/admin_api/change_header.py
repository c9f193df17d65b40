"""The headers of requests to the admin port."""

from __future__ import annotations

from typing import Final

CHANGE_HEADER: Final = "X-Dynactor-Admin"
CHANGE_HEADER_VALUE: Final = "1"
# The token of a page of the console, in lower case as in the headers of a call.
CONSOLE_HEADER: Final = "x-dynactor-console"

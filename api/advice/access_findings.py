"""Findings about the policies of the server: risky statements, and policies without effect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from dynactor.api.admin_api.access_messages import AccessAnswer
from dynactor.api.advice.key_findings import Finding

_SHOWN_PRINCIPALS: Final = 5


def access_findings(access: AccessAnswer) -> Iterator[Finding]:
    """The findings about the policies of a server, which concern all tables."""
    if access.mode == "observe":
        yield Finding(
            "hint",
            (),
            "The server only observes its policies: requests that no policy allows are executed",
            "Start the server with --policy-mode enforce once it logs no action_not_allowed",
        )
    principals: dict[str, list[str]] = defaultdict(list)
    for warning in access.warnings:
        principals[warning.text].append(warning.principal.rpartition(":")[2])
    for text, names in principals.items():
        more = len(names) - _SHOWN_PRINCIPALS
        shown = ", ".join(names[:_SHOWN_PRINCIPALS]) + (f" and {more} more" if more > 0 else "")
        yield Finding(
            "hint",
            (),
            f"Policy of {shown}: {text}",
            "dynactor policy suggest prints the least policy that recorded requests need"
            if access.mode == "observe"
            else "With --policy-mode observe, dynactor policy suggest prints the least policy",
            {"principals": names},
        )

"""The command ``dynactor local``, which takes DynamoDB Local's flags."""

from __future__ import annotations

import sys
from typing import Annotated, Final

from cyclopts import Parameter

from dynactor import __version__
from dynactor.api.options.local_flags import USAGE, parse_local_flags

# The duration with -delayTransientStatuses.
_TRANSITION_SECONDS: Final = 1.0


def local(*flags: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)]) -> None:
    """Start the server with these flags."""
    given = parse_local_flags(flags)
    if given.wants_help or given.wants_version:
        sys.stdout.write(USAGE if given.wants_help else f"dynactor {__version__}\n")
        return
    # The check of flags does not need the server's options.
    from dynactor.api.serve.command import start  # noqa: PLC0415

    seconds = _TRANSITION_SECONDS if given.delays_statuses else 0.0
    start(
        {
            "port": given.port,
            "in_memory": given.in_memory,
            "data_dir": given.data_directory,
            "cors_origins": given.origins,
            "compat": "dynamodb-local",
            "shared_db": given.shares_tables,
            "table_transition_seconds": seconds,
            "index_allocation_seconds": seconds,
        }
    )

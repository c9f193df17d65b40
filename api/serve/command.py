"""The command ``dynactor serve``."""

from __future__ import annotations

import faulthandler
import gc

from dynactor.api.serve.compatibility import with_compatibility
from dynactor.api.serve.import_without import import_without
from dynactor.api.serve.options import ServeOptions


def serve(options: ServeOptions | None = None) -> None:
    """Serve DynamoDB's API until SIGTERM or SIGINT."""
    start(with_compatibility(options or ServeOptions()))


def start(options: ServeOptions) -> None:
    """Serve with these options until SIGTERM or SIGINT."""
    # The engine is native code: where that is at fault, the stacks of all threads are written.
    faulthandler.enable()
    # Collections during the imports find no garbage, and take a tenth of the start.
    gc.disable()
    # structlog imports rich where it is installed, to draw tracebacks that the server does not
    # draw. Importing it takes 40 ms, a tenth of the server's start.
    import_without("structlog", "rich")
    # Options are checked, and help is printed, without the server.
    from dynactor.api.serve.service import run  # noqa: PLC0415

    # Else the next collection would look at all that the imports made: 20 ms.
    gc.freeze()
    gc.enable()
    run(options)

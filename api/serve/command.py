"""The command ``dynactor serve``."""

from __future__ import annotations

import faulthandler
import gc
from collections.abc import Mapping
from typing import Any, Final

from dynactor.api.hosting.import_without import import_without
from dynactor.api.options.command_options import OptionsCommand
from dynactor.api.options.read_settings import read_settings


def start(given: Mapping[str, Any]) -> None:
    """Serve DynamoDB's API with these options until SIGTERM or SIGINT."""
    settings = read_settings(**given)
    # Print the stacks of all threads if the engine, which is native code, crashes.
    faulthandler.enable()
    # Garbage collections during the imports would find no garbage, and take 10 % of the start.
    gc.disable()
    # structlog imports rich, if installed, for tracebacks that the server does not use. The import
    # takes 40 ms, 10 % of the server's start.
    import_without("structlog", "rich")
    # Checks of options and the help don't need the server's modules.
    from dynactor.api.serve.service import run  # noqa: PLC0415

    # Exclude all imported objects from garbage collections. The next one would take 20 ms more.
    gc.freeze()
    gc.enable()
    run(settings)


serve: Final = OptionsCommand(start)

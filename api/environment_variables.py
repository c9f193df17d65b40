"""Environment variables as options: DYNACTOR_PORT of serve, DYNACTOR_BACKUP_NAME of backup."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from difflib import get_close_matches
from typing import Final

from cyclopts import App
from cyclopts.config import Env

PREFIX: Final = "DYNACTOR_"

# The server's variables have the shorter prefix, because most are for the server.
SERVER_VARIABLES: Final = Env(PREFIX, command=False)
COMMAND_VARIABLES: Final = Env(PREFIX)

# Variables of the test suite, which the servers that it starts inherit.
_TESTS: Final = f"{PREFIX}TEST_"


def drop_empty_variables(environment: MutableMapping[str, str]) -> None:
    """Unset empty variables, because compose files and shells can't leave one out."""
    for name in [name for name in _named(environment) if not environment[name]]:
        del environment[name]


def warn_of_unknown_variables(app: App, environment: MutableMapping[str, str]) -> None:
    """Print a line for each variable that no option reads, with the most similar option."""
    given = [name for name in _named(environment) if not name.startswith(_TESTS)]
    if not given:
        return
    # A command is imported only if a variable may belong to it.
    known = set(_variables(app["serve"], PREFIX))
    for command in app:
        prefix = f"{PREFIX}{command.upper()}_"
        if command.isalpha() and command != "serve" and _has_prefix(given, prefix):
            known.update(_variables(app[command], prefix))
    for name in sorted(set(given) - known):
        meant = get_close_matches(name, known, n=1)
        advice = f"; did you mean {meant[0]}?" if meant else ""
        sys.stderr.write(f"dynactor: warning: no option reads {name}{advice}\n")


def _named(environment: MutableMapping[str, str]) -> list[str]:
    return [name for name in environment if name.startswith(PREFIX)]


def _has_prefix(names: list[str], prefix: str) -> bool:
    return any(name.startswith(prefix) for name in names)


def _variables(app: App, prefix: str) -> Iterator[str]:
    """The variables of a command and of the commands in it."""
    for argument in app.assemble_argument_collection():
        for name in argument.names:
            yield f"{prefix}{name.lstrip('-').upper().replace('-', '_')}"
    for command in app:
        if command.isalpha():
            yield from _variables(app[command], f"{prefix}{command.upper()}_")

"""The command line: the commands by name, each imported when it is called."""

from __future__ import annotations

import gc
import os
import sys
from inspect import cleandoc
from typing import Final

from cyclopts import App

from dynactor import __version__
from dynactor.api.environment_variables import (
    COMMAND_VARIABLES,
    SERVER_VARIABLES,
    drop_empty_variables,
    warn_of_unknown_variables,
)
from dynactor.api.serve.configuration_error import ConfigurationError

_YOUNG_OBJECTS: Final = 50_000

# Commands by name, with the function that carries out each and its help. The help stands here so
# that the list of commands, which shows the first sentence, is printed without importing them.
_COMMANDS: Final = {
    "serve": ("serve.command:serve", "Serve DynamoDB's API until SIGTERM or SIGINT."),
    "violations": (
        "commands.violations:violations",
        """List the values in a table that can't be keys of a global secondary index.

        The exit code is 0 if no violation is left, 1 if some are, 2 if something went wrong.
        """,
    ),
    "replay": (
        "commands.replay:replay",
        """Publish a table's recorded changes, or its items and changes, to a topic once more.

        The server must have been started with --kafka-bootstrap-servers. The exit code is 0 if all
        was published, or if --follow was stopped, and 1 if not.
        """,
    ),
    "backup": (
        "commands.backup:backup",
        """Back up all tables while they are used, and print the directory of the backup.

        The server must have been started with --backup-dir. A server that is started with a copy
        of that directory as its --data-dir has everything. The exit code is 0 if the backup was
        made, and 1 if not.
        """,
    ),
    "check": (
        "commands.check:check",
        """Read all of a data directory that no server uses, and tell what it holds.

        Every checksum is compared, and nothing is changed. The exit code is 0 if no damage was
        found, and 1 if some was, or if the directory can't be read.
        """,
    ),
    "doctor": (
        "commands.doctor:doctor",
        """Write a report for whoever helps: versions, limits, metrics and sizes of files.

        It has no data, no keys, no secrets and no names of tables. A running server adds its part.
        """,
    ),
    "insights": (
        "commands.insights:insights",
        "Show the most accessed and the most throttled keys of a table in the last hour.",
    ),
    "advise": (
        "commands.advise.command:advise",
        """Tell what a table's recorded use says about its keys, units and indexes.

        Each advice names its rules, which docs/RULES.md holds.
        """,
    ),
}

app = App(
    name="dynactor",
    help="A self-hosted, durable DynamoDB.",
    version=__version__,
    # Without Markdown, which takes 50 ms to import. The commands' own help is in Markdown.
    help_format="plaintext",
    version_format="plaintext",
    config=COMMAND_VARIABLES,
)
for _name, (_function, _help) in _COMMANDS.items():
    app.command(
        f"dynactor.api.{_function}",
        name=_name,
        help=cleandoc(_help),
        help_format="markdown",
        config=SERVER_VARIABLES if _name == "serve" else COMMAND_VARIABLES,
    )
app.command(
    "dynactor.load.command:app",
    name="load",
    help="Run a workload against a DynamoDB endpoint, and show what came of it.",
)
# It has commands of its own, and says itself how its help is written.
app.command(
    "dynactor.api.commands.clock:clock",
    name="clock",
    help="Read or move the clock of a server that was started with --virtual-clock.",
)
# It takes DynamoDB Local's flags and prints its help itself.
app.command(
    "dynactor.api.serve.local_command:local",
    name="local",
    help="Serve as DynamoDB Local does, with DynamoDB Local's flags.",
    help_flags=(),
    version_flags=(),
    config=(),
)
app.command(
    "dynactor.api.commands.install_completion:install_completion",
    name="--install-completion",
    help="Install completion of commands and options for bash, zsh or fish.",
)


def main() -> None:
    """The console script."""
    # What is made until a command begins stays, and garbage collections find none in it.
    gc.set_threshold(_YOUNG_OBJECTS)
    drop_empty_variables(os.environ)
    warn_of_unknown_variables(app, os.environ)
    try:
        app()
    except ConfigurationError as error:
        sys.stderr.write(f"dynactor: {error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()

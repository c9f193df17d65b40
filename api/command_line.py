"""The command line: the commands by name, each imported when it is called."""

from __future__ import annotations

import gc
import os
import sys
from inspect import cleandoc
from typing import Final

from cyclopts import App

from dynactor import __version__
from dynactor.api.clients.reach import CallFailed
from dynactor.api.environment_variables import (
    COMMAND_VARIABLES,
    SERVER_VARIABLES,
    drop_empty_variables,
    warn_of_unknown_variables,
)
from dynactor.model.configuration_error import ConfigurationError

_YOUNG_OBJECTS: Final = 50_000

# Commands by name, each with its function and its help. The help is here, so that the list of
# commands can be printed without importing them. The list shows the first sentence of each help.
_COMMANDS: Final = {
    "serve": ("serve.command:serve", "Serve DynamoDB's API until SIGTERM or SIGINT."),
    "violations": (
        "commands.violations:violations",
        """List the values in a table that can't be keys of a global secondary index.

        The exit code is 0 without remaining violations, 1 with some, and 2 after an error.
        """,
    ),
    "replay": (
        "commands.replay:replay",
        """Publish a table's recorded changes, or its items and changes, to a topic again.

        The server must have been started with --kafka-bootstrap-servers. The exit code is 0 if
        everything was published or --follow was stopped, else 1.
        """,
    ),
    "backup": (
        "commands.backup:backup",
        """Back up all tables while they are in use, and print the directory of the backup.

        The server must have been started with --backup-dir. To restore, start a server with a
        copy of the printed directory as its --data-dir. The exit code is 0 after a backup, else 1.
        """,
    ),
    "check": (
        "commands.check:check",
        """Check a data directory that no server uses, and print a summary of its content.

        Every row is read and every checksum verified; nothing is changed. The exit code is 0
        without damage, and 1 with damage or if the directory can't be read.
        """,
    ),
    "encrypt-keys": (
        "commands.encrypt_keys:encrypt_keys",
        "Encrypt a file of access keys for --credentials-file, and print the result.",
    ),
    "copy": (
        "commands.copy:copy",
        """Copy all data from a data directory to a PostgreSQL database, or back.

        No server may use either of them. To continue an interrupted copy, repeat the command. At
        the end all rows of both are read and compared. The exit code is 0 after a copy, else 1.
        """,
    ),
    "mirror": (
        "commands.tables.mirror_command:mirror",
        """Copy a live table to another endpoint, and follow its changes.

        An endpoint is AWS, this server or a similar one. To continue an interrupted mirror, repeat
        the command. A signal ends it. The exit code is 0 after a signal or if the copy has caught
        up, 1 if --verify has found differences, and 2 after an error.
        """,
    ),
    "export": (
        "commands.tables.export_command:export",
        """Export a table of any endpoint into a directory, in the layout of AWS's exports.

        The command prints the folder of the export. The exit code is 0 after an export, else 1.
        """,
    ),
    "import": (
        "commands.tables.import_command:import_",
        """Import exports, CSV and JSON files, and output of aws dynamodb scan into any endpoint.

        Items that are refused are listed with their file, line and reason. The exit code is 0
        if every item was written, 1 if some were refused, and 2 after an error.
        """,
    ),
    "nodes": (
        "commands.nodes:nodes",
        """List the nodes of a cluster, as one of them sees them.

        The server must have been started with --peer-listen. The exit code is 0 after a list,
        else 1.
        """,
    ),
    "doctor": (
        "commands.doctor:doctor",
        """Write a report for support requests: versions, limits, metrics and sizes of files.

        The report has no data, no keys, no secrets and no names of tables. It has metrics if a
        server runs.
        """,
    ),
    "insights": (
        "commands.insights:insights",
        "Show the most accessed and the most throttled keys of a table in the last hour.",
    ),
    "advise": (
        "commands.advise:advise",
        """Advise on a table's keys, units and indexes, from the requests of the last hour.

        Each piece of advice names its rules in docs/RULES.md.
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
    help="Run a workload against a DynamoDB endpoint, and show its result.",
)
# This command has subcommands of its own, and sets the format of its help.
app.command(
    "dynactor.api.commands.clock:clock",
    name="clock",
    help="Read or move the clock of a server that was started with --virtual-clock.",
)
app.command(
    "dynactor.api.commands.policy:policy",
    name="policy",
    help="Test IAM policies, and suggest the policy that a service needs.",
)
app.command(
    "dynactor.api.commands.jobs:jobs",
    name="jobs",
    help="List or cancel the imports, exports and bulk operations of a server.",
)
# The command takes DynamoDB Local's flags and prints its help itself.
app.command(
    "dynactor.api.serve.local_command:local",
    name="local",
    help="Serve as DynamoDB Local does, with DynamoDB Local's flags.",
    help_flags=(),
    version_flags=(),
    config=(),
)
app.command(
    "dynactor.api.install_completion:install_completion",
    name="--install-completion",
    help="Install completion of commands and options for bash, zsh or fish.",
)


def main() -> None:
    """Run the command line: the console script ``dynactor``."""
    # Objects created before a command starts stay alive, so collecting garbage early is useless.
    gc.set_threshold(_YOUNG_OBJECTS)
    drop_empty_variables(os.environ)
    warn_of_unknown_variables(app, os.environ)
    try:
        app()
    except (ConfigurationError, CallFailed) as error:
        sys.exit(f"dynactor: {error}")


if __name__ == "__main__":
    main()

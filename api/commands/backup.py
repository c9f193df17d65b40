"""The command ``dynactor backup``: makes a running server back up all its tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from cyclopts import Parameter

from dynactor.api.admin_api.backup_messages import BACKUPS_PATH, BackupAnswer
from dynactor.api.clients.server_address import ServerAddress


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class BackupOptions:
    """The name of the backup."""

    name: str | None = None
    """Name of the backup and of its directory. Default: the time."""

    server: ServerAddress = field(default_factory=ServerAddress)


def backup(options: BackupOptions | None = None) -> None:
    """Run the command."""
    options = options or BackupOptions()
    body = {} if options.name is None else {"name": options.name}
    # No timeout, because the server may first have to remove the rows of deleted tables.
    server = options.server.admin_client()
    made = server.ask("POST", BACKUPS_PATH, BackupAnswer, body=body, timeout_seconds=None)
    sys.stdout.write(f"{made.directory}\n")

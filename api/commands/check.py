"""The command ``dynactor check``: reads a data directory that no server uses."""

from __future__ import annotations

import sys
from pathlib import Path

from dynactor.api.advice.text import size
from dynactor.api.hosting.import_without import import_without


def check(directory: Path, /) -> None:
    """Run the command.

    Parameters
    ----------
    directory
        A data directory, a backup, or a copy of one.
    """
    import_without("structlog", "rich")
    # The command's help does not need the engine.
    from dynactor.storage.rocks.check import check_directory  # noqa: PLC0415
    from dynactor.storage.store import StoreError  # noqa: PLC0415

    try:
        found = check_directory(directory.expanduser())
    except StoreError as error:
        sys.exit(f"dynactor: {error}")
    rows = f"{found.rows:,} rows of {size(found.row_bytes)}, {size(found.log_bytes)} of logs"
    lines = [f"{directory}: format {found.format_version}, {rows}"]
    for table in found.tables:
        entries = f", {table.index_entries:,} index entries" if table.index_entries else ""
        namespace = f" in {table.namespace.rstrip('/')}" if table.namespace else ""
        lines.append(f"  {table.name}{namespace}: {table.items:,} items{entries}")
    lines.append(f"  {found.other_rows:,} other rows: streams, checkpoints, backups of tables")
    if not found.has_mark:
        lines.append("The file mark is missing: the end of the log can't be checked")
    lines.append("No damage was found")
    sys.stdout.write("\n".join(lines) + "\n")

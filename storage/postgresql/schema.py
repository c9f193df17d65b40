"""The tables of a database: created at the first start, and checked at each start."""

from __future__ import annotations

import re
from typing import Any, Final

import structlog

from dynactor.storage.data_directory import FORMAT_VERSION
from dynactor.storage.postgresql import schema_sql, sql
from dynactor.storage.postgresql.address import Address
from dynactor.storage.store import CannotOpen

_FORMAT: Final = re.compile(r"dynactor data, format (\d+)\Z")

_log = structlog.get_logger("storage")


async def open_schema(connection: Any, address: Address) -> None:
    """Create the tables unless they exist; raises ``CannotOpen`` if something does not fit."""
    await _check_server(connection)
    async with connection.transaction():
        await connection.execute(sql.LOCK_SCHEMA, address.schema)
        comment = await connection.fetchval(sql.FIND_SCHEMA, address.schema)
        found = _FORMAT.fullmatch(comment or "")
        if found is None:
            if await connection.fetchval(sql.FIND_TABLES, address.schema):
                raise CannotOpen(
                    f"The schema {address.schema} of database {address.database} holds tables "
                    "that dynactor did not make. Choose another database, or add ?schema=NAME to "
                    "the URL of --store"
                )
            await connection.execute(schema_sql.create_schema(address.schema))
            _log.info("schema_made", schema=address.schema, format=FORMAT_VERSION)
        elif int(found[1]) > FORMAT_VERSION:
            raise CannotOpen(
                f"The schema {address.schema} of database {address.database} has format "
                f"{found[1]}, this dynactor knows formats up to {FORMAT_VERSION}. Start the "
                "newer version that wrote it, or choose another database"
            )


async def open_members_table(connection: Any, address: Address) -> None:
    """Create the table of a cluster's nodes unless it exists."""
    async with connection.transaction():
        await connection.execute(sql.LOCK_SCHEMA, address.schema)
        await connection.execute(schema_sql.create_members(address.schema))


async def check_format(connection: Any, address: Address) -> None:
    """Check that the owner has raised the stored format to this one; raises ``CannotOpen``."""
    comment = await connection.fetchval(sql.FIND_SCHEMA, address.schema)
    if comment != sql.FORMAT_COMMENT:
        raise CannotOpen(f"The schema {address.schema} has another format than this version's")


async def raise_format(connection: Any, address: Address) -> None:
    """Raise the stored format, so that older versions refuse data that they don't know.

    Only the owner of the database may call this.
    """
    comment = await connection.fetchval(sql.FIND_SCHEMA, address.schema)
    if comment != sql.FORMAT_COMMENT:
        async with connection.transaction():
            await connection.execute(schema_sql.raise_format(address.schema))
        _log.info("format_raised", before=comment, now=sql.FORMAT_COMMENT)


async def _check_server(connection: Any) -> None:
    settings = await connection.fetchrow(sql.SETTINGS)
    version = settings["version"]
    if version < sql.OLDEST_SERVER_VERSION:
        raise CannotOpen(
            f"This is PostgreSQL {version // 10_000}, dynactor needs "
            f"{sql.OLDEST_SERVER_VERSION // 10_000} or newer"
        )
    if settings["synchronous_commit"] == "off":
        raise CannotOpen(
            "synchronous_commit is off, so PostgreSQL would lose writes that were answered. Set "
            "it to on: ALTER ROLE … SET synchronous_commit = on"
        )
    if "off" in (settings["fsync"], settings["full_page_writes"]):
        _log.warning(
            "fsync_disabled",
            advice="fsync or full_page_writes is off there: a power cut may damage the database",
        )

"""The table of nodes: each node renews its own row, on a connection of its own."""

from __future__ import annotations

import time
from secrets import token_hex
from typing import Any, Final

import anyio
import structlog

from dynactor.model.members import WRONG_CLOCK_SECONDS, Beat, Claims, Member, clock_ahead
from dynactor.storage import key_layout
from dynactor.storage.catalog import decode_claim
from dynactor.storage.postgresql import sql
from dynactor.storage.postgresql.address import Address, parse_address
from dynactor.storage.postgresql.connections import close_connection, connect
from dynactor.storage.postgresql.errors import FAILURES, cannot_open
from dynactor.storage.postgresql.schema import open_members_table, open_schema
from dynactor.storage.store import CannotOpen, Unavailable

# The answer to a renewal that took longer says little about the clock.
_SLOW_SECONDS: Final = 0.5
_STATEMENT_SECONDS: Final = 5.0

_log = structlog.get_logger("nodes")


class PostgresqlMembers:
    """The members in a database, and the row of this node."""

    def __init__(self, address: Address, connection: Any, me: Member) -> None:
        self._address = address
        self._connection = connection
        self._statements = sql.MemberStatements(address.schema)
        self._me = me
        # A connection runs one statement at a time.
        self._turn = anyio.Lock()

    @property
    def me(self) -> Member:
        """This node, as it joined last."""
        return self._me

    async def join(self) -> bool:
        """Write this node's row; return whether there is no other node with its name."""
        me = self._me = Member(self._me.name, token_hex(8), 0, self._me.address, self._me.version)
        joined: str | None = await self._value(
            self._statements.join, me.name, me.incarnation, me.address, me.version
        )
        return joined is not None

    async def beat(self, epoch: int, share: int, *, is_leaving: bool) -> Beat:
        """Renew this node's row, and return all members.

        ``epoch`` is the one with which this node became the leader; 0 if it is not the leader.
        ``share`` is the epoch of this node's share; 0 if it has none.

        Raises:
            Unavailable: PostgreSQL can't be reached.
        """
        before = time.time()
        rows = await self._rows(
            self._statements.beat,
            self._me.name,
            self._me.incarnation,
            epoch,
            is_leaving,
            share,
            key_layout.CLAIMS_VERSION,
            share >> sql.SLOT_SHIFT,
        )
        after = time.time()
        ahead = clock_ahead(before, rows[0]["clock"], after)
        members = tuple(
            Member(*[row[name] for name in Member.__struct_fields__])
            for row in rows
            if row["name"] is not None
        )
        version = int.from_bytes(rows[0]["claims_version"] or b"", "big")
        return Beat(
            members,
            rows[0]["is_renewed"],
            rows[0]["owned_epoch"],
            version,
            rows[0]["share_epoch"] if share else 0,
            ahead if after - before < _SLOW_SECONDS else None,
        )

    async def claims(self) -> Claims:
        """All claims, by the names of their tables, and their version.

        Raises:
            Unavailable: PostgreSQL can't be reached.
        """
        rows = await self._rows(
            self._statements.claims, *key_layout.CLAIMS, key_layout.CLAIMS_VERSION
        )
        values = {bytes(key): bytes(value) for key, value in rows}
        version = int.from_bytes(values.pop(key_layout.CLAIMS_VERSION, b""), "big")
        return Claims(
            version,
            {key_layout.table_name(key): decode_claim(value) for key, value in values.items()},
        )

    async def remove(self, member: Member) -> bool:
        """Remove a member, unless it has renewed its row; return whether it was removed.

        If it was the leader, PostgreSQL ends the session with which it owns the data.
        """
        return bool(
            await self._rows(self._statements.remove, member.name, member.incarnation, member.beat)
        )

    async def is_owned(self) -> bool:
        """Whether any server holds the lock of the owner."""
        is_owned: bool = await self._value(self._statements.is_owned)
        return is_owned

    async def leave(self) -> None:
        """Delete this node's row, if PostgreSQL can be reached."""
        try:
            await self._rows(self._statements.leave, self._me.name, self._me.incarnation)
        except Unavailable as error:
            _log.debug("leaving_failed", error=str(error))

    async def close(self) -> None:
        """Close the connection."""
        await close_connection(self._connection)

    async def _value(self, query: str, *arguments: Any) -> Any:
        rows = await self._rows(query, *arguments)
        return rows[0][0] if rows else None

    async def _rows(self, query: str, *arguments: Any) -> Any:
        async with self._turn:
            try:
                if self._connection.is_closed():
                    self._connection = await connect(self._address)
                return await self._connection.fetch(query, *arguments, timeout=_STATEMENT_SECONDS)
            except (*FAILURES, TimeoutError) as error:
                self._connection.terminate()
                raise Unavailable(f"PostgreSQL: {error}") from error


async def open_members(url: str, name: str, address: str, version: str) -> PostgresqlMembers:
    """Connect to the members in this database; its tables are created unless they exist.

    Raises:
        CannotOpen: the database can't be used, or this machine's clock differs from PostgreSQL's.
    """
    place = parse_address(url)
    try:
        connection = await connect(place)
    except (*FAILURES, TimeoutError, ValueError) as error:
        raise cannot_open(
            error, user=place.user, database=place.database, hosts=place.hosts
        ) from error
    try:
        await open_schema(connection, place)
        await open_members_table(connection, place)
        await _check_clock(connection)
    except BaseException as error:
        await close_connection(connection)
        if isinstance(error, FAILURES):
            raise cannot_open(
                error, user=place.user, database=place.database, hosts=place.hosts
            ) from error
        raise
    return PostgresqlMembers(place, connection, Member(name, "", 0, address, version))


async def _check_clock(connection: Any) -> None:
    """Refuse a clock that differs from PostgreSQL's, by more than the query could explain."""
    before = time.time()
    theirs: float = await connection.fetchval(sql.CLOCK)
    after = time.time()
    ahead = clock_ahead(before, theirs, after)
    if abs(ahead) > WRONG_CLOCK_SECONDS:
        raise CannotOpen(
            f"The clock of this machine is {abs(ahead):.1f} s "
            f"{'ahead of' if ahead > 0 else 'behind'} that of PostgreSQL, and the nodes of a "
            "cluster may differ by 1 s. Synchronize both clocks with NTP"
        )

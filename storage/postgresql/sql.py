"""SQL of statements, for PostgreSQL 14 to 18; ``schema_sql`` has that of tables and functions.

A commit is one call of the function ``commit``. Each statement in the function has a snapshot of
its own, which is newer than the locks taken before. A single statement would not be enough: if it
waits for a lock and then reads another row, its snapshot is older than the lock (measured).

CockroachDB and YugabyteDB were not tested. Both would need another way to lock absent rows.
"""

from __future__ import annotations

from typing import Final

from dynactor.storage.data_directory import FORMAT_VERSION
from dynactor.storage.store import LOCK_SECONDS

# The version is the same as that of a data directory. A change of the tables or of ``commit``
# raises the version, too.
FORMAT_COMMENT: Final = f"dynactor data, format {FORMAT_VERSION}"
OLDEST_SERVER_VERSION: Final = 140_000

TABLES: Final = ("heads", "rows", "log")

# Errors that ``commit`` raises.
INSERT_COLLISION: Final = "DY001"
OWNED_BY_ANOTHER: Final = "DY002"
# The error of a read after another server has become the owner: see ``Statements``. No statement
# casts other text to a value, so the error has no other cause.
READ_BY_ANOTHER: Final = "22P02"

# The slots of the table ``nodes``. Each has an epoch and a lock; the second lock is of commits. The
# epochs of two slots are never equal: those of a share begin with its slot.
LEADER_SLOT: Final = 1
FIRST_SHARE_SLOT: Final = 3
SLOT_SHIFT: Final = 32

# The verdicts of ``commit`` on a call.
ACCEPTED, CONFLICT, FENCED, WRITTEN_BEFORE = range(4)

# Every statement finds few rows by their keys. Statistics of a table that just grew, or of a
# statement's arrays, must not make the planner choose anything but the index.
SESSION_SETTINGS: Final = {
    "application_name": "dynactor",
    "default_transaction_isolation": "read committed",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    # If the server's machine fails, PostgreSQL ends the session and releases its locks.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}

# Commits that take longer don't keep the other commits waiting while an epoch is raised.
COMMIT_SECONDS: Final = 1.0

# For transactions that hold locks for which other nodes wait.
END_IDLE_TRANSACTION: Final = (
    f"SET LOCAL idle_in_transaction_session_timeout = {LOCK_SECONDS * 1_000:.0f}"
)

FIND_SCHEMA: Final = (
    "SELECT obj_description(oid, 'pg_namespace') FROM pg_catalog.pg_namespace WHERE nspname = $1"
)
FIND_TABLES: Final = (
    "SELECT count(*) FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1"
)
# Two servers may start on an empty database at the same time.
LOCK_SCHEMA: Final = "SELECT pg_advisory_xact_lock(hashtext('dynactor schema'), hashtext($1))"
SETTINGS: Final = (
    "SELECT current_setting('server_version_num')::int AS version, "
    "current_setting('synchronous_commit') AS synchronous_commit, "
    "current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes, "
    "current_setting('server_encoding') AS encoding"
)


CLOCK: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"


class ShareStatements:
    """The statements on the slots of shares, in the table of nodes.

    Only the owner with ``epoch`` of ``slot`` fences a share.
    """

    def __init__(self, nodes: str, epoch: int, slot: int) -> None:
        self.share_slots = f"SELECT slot FROM {nodes} WHERE slot >= {FIRST_SHARE_SLOT} ORDER BY 1"
        self.add_share = (
            f"INSERT INTO {nodes} SELECT slot, slot::bigint << {SLOT_SHIFT}, 'nobody', now() FROM "
            f"(SELECT greatest(max(slot) + 1, {FIRST_SHARE_SLOT}) AS slot FROM {nodes}) AS next "
            "ON CONFLICT DO NOTHING"
        )
        self.share_epochs = f"SELECT epoch FROM {nodes} WHERE slot >= {FIRST_SHARE_SLOT}"
        self.try_lock_share = f"SELECT pg_try_advisory_xact_lock('{nodes}'::regclass::oid::int, $1)"
        self.fence_share = (
            f"UPDATE {nodes} SET epoch = epoch + 1 WHERE slot = $1 AND epoch = $2 "
            f"AND EXISTS (SELECT FROM {nodes} n WHERE n.slot = {slot} AND n.epoch = {epoch})"
        )
        self.fence_shares = f"UPDATE {nodes} SET epoch = epoch + 1 WHERE slot >= {FIRST_SHARE_SLOT}"


class Statements(ShareStatements):
    """The statements on the tables of one schema.

    Reads fail if their snapshot shows an owner with a higher epoch than ``epoch``. Only the owner
    changes tables, so the definitions that a read uses are never older than the rows that it reads.
    """

    def __init__(self, schema: str, epoch: int = 0, slot: int = LEADER_SLOT) -> None:
        quoted = quoted_name(schema)
        self.tables = [f"{quoted}.{table}" for table in TABLES]
        nodes = f"{quoted}.nodes"
        super().__init__(nodes, epoch, slot)
        # PostgreSQL evaluates this once for each statement. The text of a higher epoch is not a
        # boolean, so the cast fails.
        self._is_owned = (
            f"(SELECT CASE WHEN n.epoch <= {epoch} THEN true "
            f"ELSE ('epoch ' || n.epoch)::boolean END FROM {nodes} n WHERE n.slot = {slot})"
        )
        self.commit = (
            f"SELECT {quoted}.commit($1::bigint, $2::bytea, $3::int, $4::int[], $5::int[], "
            "$6::int[], $7::bool[], $8::bytea[], $9::bytea[], $10::int[], $11::int[], "
            "$12::bool[], $13::bytea[], $14::bytea[], $15::bytea[], $16::int[], $17::int[], "
            "$18::bool[], $19::bytea[], $20::bytea[], $21::bytea[], $22::int[], $23::int[], "
            "$24::bytea[], $25::int[], $26::bytea[], $27::bytea[], $28::bytea[], $29::bytea[], "
            "$30::bool[], $31::int[], $32::bytea[])"
        )
        self.discard = f"SELECT {quoted}.discard($1::bigint, $2::int)"
        # The number of a slot is also the number of its lock.
        self.try_lock = f"SELECT pg_try_advisory_lock('{nodes}'::regclass::oid::int, {slot})"
        self.epoch = f"SELECT epoch FROM {nodes} WHERE slot = {slot}"
        self.owner = f"SELECT name, started_at FROM {nodes} WHERE slot = {slot}"
        # Waits for the commits in flight, and lets later ones wait. So it gives up soon, and
        # PostgreSQL ends the transaction of a node that is paused or whose machine fails.
        self.wait_for_commits = (
            f"{END_IDLE_TRANSACTION}; SET LOCAL lock_timeout = {COMMIT_SECONDS * 1_000:.0f}; "
            f"SELECT pg_advisory_xact_lock('{nodes}'::regclass::oid::int, 2)"
        )
        # Ends the sessions whose commits take longer, and returns their number. Their servers
        # repeat these commits. See ``end_sessions`` about synchronous standbys.
        self.end_slow_commits = (
            "SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a "
            f"WHERE clock_timestamp() - a.xact_start > interval '{COMMIT_SECONDS} seconds' "
            "AND a.usename = current_user AND a.wait_event IS DISTINCT FROM 'SyncRep' "
            f"AND a.pid IN (SELECT l.pid {_lock_holders(nodes, 2)}) AND a.pid <> pg_backend_pid()"
        )
        self.take_over = (
            f"UPDATE {nodes} SET epoch = epoch + 1, name = $1, started_at = now() "
            f"WHERE slot = {slot} RETURNING epoch"
        )
        # Ends sessions of this user, and returns those that have not ended, with the own session. A
        # session that waits for a synchronous standby has committed, but the standby may lack the
        # commit. It goes on waiting, because other sessions would see the commit otherwise.
        self.end_sessions = (
            "SELECT pid, CASE WHEN pid <> pg_backend_pid() AND usename = current_user "
            "AND wait_event IS DISTINCT FROM 'SyncRep' THEN pg_terminate_backend(pid) END "
            "FROM pg_stat_activity WHERE pid = ANY($1::int[]) OR pid = pg_backend_pid()"
        )
        self.sizes = (
            f"SELECT pg_total_relation_size('{self.tables[0]}') + "
            f"pg_total_relation_size('{self.tables[1]}'), "
            f"pg_total_relation_size('{self.tables[2]}')"
        )

    def load(self, tables: tuple[int, ...]) -> str:
        """The query for stored keys and values; it has one array of keys for each table."""
        return " UNION ALL ".join(
            f"SELECT key, value FROM {self.tables[table]} "
            f"WHERE key = ANY(${at}::bytea[]) AND {self._is_owned}"
            for at, table in enumerate(tables, 1)
        )

    def lock(self, table: int) -> str:
        """The statement that locks the rows of an array of keys, in the order of the keys."""
        return (
            f"SELECT 1 FROM {self.tables[table]} WHERE key = ANY($1::bytea[]) "
            "ORDER BY key FOR UPDATE"
        )

    def load_with_page(self, tables: tuple[int, ...], page_table: int) -> str:
        """The rows of some keys, and a page of a table; the arguments of the page come first."""
        loads = (
            f"SELECT key, value, tail, false FROM {self.tables[table]} "
            f"WHERE key = ANY(${at}::bytea[])"
            for at, table in enumerate(tables, 5)
        )
        page = (
            f"SELECT key, value, tail, true FROM ({self.page(page_table, reverse=False)}) AS read"
        )
        return " UNION ALL ".join((*loads, page))

    def page(self, table: int, *, reverse: bool) -> str:
        """The rows between two stored keys, up to the row that reaches the number of bytes."""
        return self._page(table, "key", "key >= $1 AND key < $2", reverse=reverse)

    def first_rows(self, table: int, *, reverse: bool) -> str:
        """The first rows of each range between two stored keys, by the place of the range."""
        order = "key DESC" if reverse else "key"
        return (
            "SELECT each.place, found.key, found.value, found.tail "
            "FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS each(low, high, place) "
            f"CROSS JOIN LATERAL (SELECT key, value, tail FROM {self.tables[table]} "
            f"WHERE key >= each.low AND key < each.high AND {self._is_owned} "
            f"ORDER BY {order} LIMIT $3::bigint) AS found"
        )

    def cluster(self, table: int, *, reverse: bool) -> str:
        """A page of the long keys with one prefix, between two tails."""
        condition = "key >= $1 AND key < $2 AND tail >= $5 AND ($6::bytea IS NULL OR tail < $6)"
        return self._page(table, "tail", condition, reverse=reverse)

    def _page(self, table: int, order: str, condition: str, *, reverse: bool) -> str:
        ordered = f"{order} DESC" if reverse else order
        # ``before`` is the size of the preceding rows. Reading a value's length does not read a
        # large value itself.
        return (
            "SELECT key, value, tail FROM ("
            "SELECT key, value, tail, sum(octet_length(key) + octet_length(value) + "
            "coalesce(octet_length(tail) - 32, 0)) "
            f"OVER (ORDER BY {ordered} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before "
            f"FROM {self.tables[table]} WHERE {condition} AND {self._is_owned} "
            f"ORDER BY {ordered} LIMIT $3::bigint"
            f") AS page WHERE coalesce(before, 0) < $4::bigint ORDER BY {ordered}"
        )


class MemberStatements:
    """The statements on the table of nodes."""

    def __init__(self, schema: str) -> None:
        quoted = quoted_name(schema)
        members, nodes, heads = (f"{quoted}.{name}" for name in ("members", "nodes", "heads"))
        owner_lock = _lock_holders(nodes, LEADER_SLOT)
        # One statement ends the session of a home that is removed, because no node does so later. A
        # server that has become the owner since keeps its session.
        end_owner = (
            f"SELECT count(pg_terminate_backend(l.pid)) {owner_lock} "
            f"AND EXISTS (SELECT FROM {nodes} n WHERE n.slot = {LEADER_SLOT} AND n.epoch = "
        )
        # A node that restarts at its own address replaces its row. Only it can listen there. If its
        # machine has failed, PostgreSQL may not have noticed the end of the session of a home.
        self.join = (
            f"WITH joined AS (INSERT INTO {members} AS m VALUES ($1, $2, 0, $3, $4, 0, false, 0) "
            "ON CONFLICT (name) DO UPDATE SET incarnation = $2, beat = 0, version = $4, "
            "epoch = 0, is_leaving = false, share = 0 WHERE m.address = $3 RETURNING name) "
            # The statement's snapshot has the row as it was before.
            f"SELECT name, ({end_owner}(SELECT epoch FROM {members} WHERE name = $1))) FROM joined"
        )
        self.beat = (
            f"WITH renewed AS (UPDATE {members} SET beat = beat + 1, epoch = $3, is_leaving = $4, "
            "share = $5 WHERE name = $1 AND incarnation = $2 RETURNING 1) "
            "SELECT n.epoch AS owned_epoch, EXISTS (SELECT FROM renewed) AS is_renewed, "
            f"(SELECT value FROM {heads} WHERE key = $6) AS claims_version, "
            f"(SELECT s.epoch FROM {nodes} s WHERE s.slot = $7) AS share_epoch, "
            "extract(epoch FROM clock_timestamp())::float8 AS clock, "
            "m.name, m.incarnation, m.beat, m.address, m.version, "
            "m.epoch = n.epoch AND n.epoch > 0 AS is_leader, m.is_leaving, m.share "
            f"FROM {nodes} n LEFT JOIN {members} m ON true "
            f"WHERE n.slot = {LEADER_SLOT} ORDER BY m.name"
        )
        self.claims = (
            f"SELECT key, value FROM {heads} WHERE key >= $1 AND key < $2 "
            f"UNION ALL SELECT key, value FROM {heads} WHERE key = $3"
        )
        self.remove = (
            f"WITH removed AS (DELETE FROM {members} WHERE name = $1 AND incarnation = $2 "
            f"AND beat = $3 RETURNING epoch) SELECT ({end_owner}removed.epoch)) FROM removed"
        )
        self.is_owned = f"SELECT EXISTS (SELECT {owner_lock})"
        self.leave = f"DELETE FROM {members} WHERE name = $1 AND incarnation = $2"


def _lock_holders(nodes: str, number: int) -> str:
    """The end of a query of the sessions that hold an advisory lock of a schema."""
    return (
        "FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
        f"WHERE l.locktype = 'advisory' AND l.classid = '{nodes}'::regclass::oid "
        f"AND l.objid = {number} AND l.objsubid = 2 AND l.granted "
        "AND d.datname = current_database()"
    )


def quoted_name(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'

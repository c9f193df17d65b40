"""All SQL, for PostgreSQL 14 to 18.

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


def create_members(schema: str) -> str:
    """The statement that creates the table of a cluster's nodes.

    A server alone has no row in it, so earlier versions need not know the table.
    """
    quoted = _quoted(schema)
    return f"""
        CREATE TABLE IF NOT EXISTS {quoted}.members (
            name text PRIMARY KEY,
            incarnation text NOT NULL,
            beat bigint NOT NULL,
            address text NOT NULL,
            version text NOT NULL,
            epoch bigint NOT NULL,
            is_leaving boolean NOT NULL
        ) WITH (fillfactor = 50);
        -- Not without a need, because a change locks the table.
        DO $body$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_attribute
                WHERE attrelid = '{quoted}.members'::regclass AND attname = 'share')
            THEN ALTER TABLE {quoted}.members ADD COLUMN share bigint NOT NULL DEFAULT 0; END IF;
            IF EXISTS (SELECT FROM pg_constraint
                WHERE conrelid = '{quoted}.nodes'::regclass AND conname = 'nodes_slot_check')
            THEN ALTER TABLE {quoted}.nodes DROP CONSTRAINT nodes_slot_check; END IF;
        END $body$;
    """


def create_schema(schema: str) -> str:
    """The statements that create the tables and functions."""
    quoted = _quoted(schema)
    eager = (
        "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, "
        "autovacuum_vacuum_cost_delay = 0"
    )
    tables = "".join(
        f"""
        CREATE TABLE {quoted}.{table} (
            key bytea PRIMARY KEY,
            value bytea NOT NULL,
            tail bytea,
            batch bytea
        ) WITH ({options});
        ALTER TABLE {quoted}.{table} ALTER value SET STORAGE EXTERNAL;
        """
        for table, options in (
            # Each commit updates a head, so half of each page is left free for new versions of its
            # rows.
            ("heads", f"fillfactor = 50, {eager}"),
            ("rows", "fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05"),
            ("log", "autovacuum_vacuum_scale_factor = 0.05"),
        )
    )
    return f"""
        CREATE SCHEMA IF NOT EXISTS {quoted};
        {tables}
        CREATE TABLE {quoted}.nodes (
            slot int PRIMARY KEY,
            epoch bigint NOT NULL,
            name text NOT NULL,
            started_at timestamptz NOT NULL
        );
        INSERT INTO {quoted}.nodes VALUES (1, 0, 'nobody', now());
        {raise_format(schema)}
    """


def raise_format(schema: str) -> str:
    """The statements that upgrade a schema of an earlier format."""
    quoted = _quoted(schema)
    return f"""
        CREATE TABLE IF NOT EXISTS {quoted}.discards (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            of_table int NOT NULL,
            low bytea NOT NULL,
            high bytea NOT NULL,
            low_tail bytea,
            high_tail bytea,
            low_prefix bytea NOT NULL
        );
        {_commit_function(quoted)}
        {_discard_function(quoted)}
        COMMENT ON SCHEMA {quoted} IS '{FORMAT_COMMENT}';
    """


class Statements:
    """The statements on the tables of one schema.

    Reads fail if their snapshot shows an owner with a higher epoch than ``epoch``. Only the owner
    changes tables, so the definitions that a read uses are never older than the rows that it reads.
    """

    def __init__(self, schema: str, epoch: int = 0, slot: int = LEADER_SLOT) -> None:
        quoted = _quoted(schema)
        self.tables = [f"{quoted}.{table}" for table in TABLES]
        nodes = f"{quoted}.nodes"
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
        quoted = _quoted(schema)
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


def _commit_function(schema: str) -> str:
    """SQL of the function that checks guards and heads, and writes the calls that pass.

    A call is a set of writes that must be written as a whole; one statement has several calls.
    Each row of the arrays has the number of its call, counted from 1, and of its table. ``mask``
    has a bit for each kind of work in each table, so that unnecessary statements are skipped.

    A call that was written before waits for a synchronous standby, too, because locking a row for
    an update is written to the log.

    The function inserts the rows that must be absent: the index then makes other sessions that
    insert the same rows wait. If another session was first, the whole statement fails, and each
    call is retried in a statement of its own.
    """
    is_written = "(refused IS NULL OR {0}.call <> ALL(refused))"
    guard_locks, head_locks, checks, inserts, deleted, puts = [], [], [], [], [], []
    for number, name in enumerate(TABLES):
        table = f"{schema}.{name}"
        keys = (
            "ARRAY(SELECT c.key FROM unnest(c_table, c_is_head, c_key) AS c(t, is_head, key) "
            f"WHERE c.t = {number} AND {{0}} c.is_head)"
        )
        guard_locks.append(f"""
            IF mask & {1 << number} <> 0 THEN
                PERFORM 1 FROM {table} WHERE key = ANY({keys.format("NOT")})
                    ORDER BY key FOR SHARE;
            END IF;""")
        head_locks.append(f"""
            IF mask & {8 << number} <> 0 THEN
                PERFORM 1 FROM {table} WHERE key = ANY({keys.format("")})
                    ORDER BY key FOR UPDATE;
            END IF;""")
        checks.append(f"""
            IF mask & {9 << number} <> 0 THEN
                FOR bad IN
                    SELECT c.call, c.is_head, coalesce(x.batch = commit.batch, false) AS written
                    FROM unnest(c_table, c_call, c_is_head, c_key, c_value)
                        AS c(t, call, is_head, key, value)
                    LEFT JOIN {table} x ON x.key = c.key
                    WHERE c.t = {number}
                    AND (x.value IS DISTINCT FROM c.value OR c.is_head AND x.batch = commit.batch)
                LOOP
                    said[bad.call] := greatest(said[bad.call], CASE
                        WHEN bad.is_head AND bad.written THEN {WRITTEN_BEFORE}
                        WHEN bad.is_head THEN {CONFLICT} ELSE {FENCED} END);
                END LOOP;
            END IF;""")
        inserts.append(f"""
            IF mask & {64 << number} <> 0 THEN
                INSERT INTO {table} (key, value, tail, batch)
                    SELECT n.key, coalesce(n.value, ''), n.tail,
                        CASE WHEN n.is_head THEN commit.batch END
                    FROM unnest(n_table, n_call, n_is_head, n_key, n_value, n_tail)
                        AS n(t, call, is_head, key, value, tail)
                    WHERE n.t = {number} AND {is_written.format("n")} ORDER BY n.key
                    ON CONFLICT DO NOTHING;
                GET DIAGNOSTICS done = ROW_COUNT;
                IF done <> (SELECT count(*) FROM unnest(n_table, n_call) AS n(t, call)
                    WHERE n.t = {number} AND {is_written.format("n")})
                THEN RAISE EXCEPTION USING ERRCODE = '{INSERT_COLLISION}'; END IF;
            END IF;""")
        deleted.append(f"""
            IF mask & {512 << number} <> 0 THEN
                DELETE FROM {table} WHERE key = ANY(ARRAY(
                    SELECT d.key FROM unnest(d_table, d_call, d_key) AS d(t, call, key)
                    WHERE d.t = {number} AND {is_written.format("d")}));
            END IF;""")
        puts.append(f"""
            IF mask & {4096 << number} <> 0 THEN
                INSERT INTO {table} (key, value, tail, batch)
                    SELECT p.key, p.value, p.tail, CASE WHEN p.is_head THEN commit.batch END
                    FROM unnest(p_table, p_call, p_is_head, p_key, p_value, p_tail)
                        AS p(t, call, is_head, key, value, tail)
                    WHERE p.t = {number} AND {is_written.format("p")}
                    ON CONFLICT (key) DO UPDATE
                        SET value = excluded.value, batch = excluded.batch;
            END IF;""")
    ranges = "".join(
        f"""
            IF r_table[at] = {number} THEN
                DELETE FROM {schema}.{name} WHERE key >= r_low[at] AND key < r_high[at]
                    AND (tail IS NULL OR (
                        (r_low_tail[at] IS NULL OR tail >= r_low_tail[at]
                            OR substring(key FOR 2600) <> substring(r_low[at] FOR 2600))
                        AND (r_high_tail[at] IS NULL OR tail < r_high_tail[at]
                            OR substring(key FOR 2600) <> substring(r_high[at] FOR 2600))));
            END IF;"""
        for number, name in enumerate(TABLES)
    )
    return f"""
        CREATE OR REPLACE FUNCTION {schema}.commit(
            epoch bigint, batch bytea, mask int, calls int[],
            c_table int[], c_call int[], c_is_head bool[], c_key bytea[], c_value bytea[],
            n_table int[], n_call int[], n_is_head bool[], n_key bytea[], n_value bytea[],
            n_tail bytea[],
            p_table int[], p_call int[], p_is_head bool[], p_key bytea[], p_value bytea[],
            p_tail bytea[],
            d_table int[], d_call int[], d_key bytea[],
            r_table int[], r_low bytea[], r_high bytea[], r_low_tail bytea[], r_high_tail bytea[],
            r_is_discard bool[], v_call int[], v_key bytea[]
        ) RETURNS int[] LANGUAGE plpgsql AS $body$
        #variable_conflict use_column
        DECLARE
            said int[] := calls;
            refused int[];
            bad record;
            done bigint;
        BEGIN
            {_own(schema, "commit")}
            {"".join(guard_locks + head_locks + checks)}
            SELECT array_agg(s.call::int) INTO refused
                FROM unnest(said) WITH ORDINALITY AS s(verdict, call) WHERE s.verdict <> {ACCEPTED};
            IF array_length(refused, 1) = array_length(said, 1) THEN RETURN said; END IF;
            FOR at IN 1 .. coalesce(array_length(r_table, 1), 0) LOOP
            IF r_is_discard[at] THEN
                INSERT INTO {schema}.discards (of_table, low, high, low_tail, high_tail, low_prefix)
                VALUES (r_table[at], r_low[at], r_high[at], r_low_tail[at], r_high_tail[at],
                    substring(r_low[at] FOR 2600));
                CONTINUE;
            END IF;{ranges}
            END LOOP;
            {"".join(inserts + deleted + puts)}
            -- Last, because concurrent commits wait for each other here.
            IF v_key <> '{{}}' THEN
                INSERT INTO {schema}.heads AS x (key, value)
                    SELECT v.key, int8send(1) FROM unnest(v_call, v_key) AS v(call, key)
                    WHERE {is_written.format("v")} ORDER BY v.key
                    ON CONFLICT (key) DO UPDATE SET value = int8send(
                        ('x' || encode(x.value, 'hex'))::bit(64)::bigint + 1);
            END IF;
            RETURN said;
        END $body$;
    """


def _discard_function(schema: str) -> str:
    """SQL of the function that deletes some rows of the oldest discarded range.

    It returns NULL if there is no such range. Each call advances the range's start, so the next
    call skips the index entries of deleted rows.
    """
    pieces = "".join(
        f"""
            IF d.of_table = {number} THEN
                keys := ARRAY(SELECT key FROM {schema}.{name} WHERE key >= d.low AND key < d.high
                    AND (tail IS NULL OR (
                        (d.low_tail IS NULL OR tail >= d.low_tail
                            OR substring(key FOR 2600) <> d.low_prefix)
                        AND (d.high_tail IS NULL OR tail < d.high_tail
                            OR substring(key FOR 2600) <> substring(d.high FOR 2600))))
                    ORDER BY key LIMIT most);
                DELETE FROM {schema}.{name} WHERE key = ANY(keys);
            END IF;"""
        for number, name in enumerate(TABLES)
    )
    return f"""
        CREATE OR REPLACE FUNCTION {schema}.discard(epoch bigint, most int)
        RETURNS int LANGUAGE plpgsql AS $body$
        #variable_conflict use_column
        DECLARE
            d record;
            keys bytea[];
        BEGIN
            {_own(schema, "discard")}
            SELECT * INTO d FROM {schema}.discards ORDER BY number LIMIT 1 FOR UPDATE;
            IF NOT FOUND THEN RETURN NULL; END IF;
            {pieces}
            IF coalesce(array_length(keys, 1), 0) < most THEN
                DELETE FROM {schema}.discards WHERE number = d.number;
            ELSE
                UPDATE {schema}.discards SET low = keys[most] || '\\x00'::bytea
                    WHERE number = d.number;
            END IF;
            RETURN coalesce(array_length(keys, 1), 0);
        END $body$;
    """


def _own(schema: str, function: str) -> str:
    """SQL that refuses a server that does not own the database any more."""
    return f"""
            PERFORM pg_advisory_xact_lock_shared('{schema}.nodes'::regclass::oid::int, 2);
            IF NOT EXISTS (SELECT FROM {schema}.nodes n WHERE n.epoch = {function}.epoch)
            THEN RAISE EXCEPTION USING ERRCODE = '{OWNED_BY_ANOTHER}'; END IF;"""


def _lock_holders(nodes: str, number: int) -> str:
    """The end of a query of the sessions that hold an advisory lock of a schema."""
    return (
        "FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
        f"WHERE l.locktype = 'advisory' AND l.classid = '{nodes}'::regclass::oid "
        f"AND l.objid = {number} AND l.objsubid = 2 AND l.granted "
        "AND d.datname = current_database()"
    )


def _quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'

"""SQL of the tables and functions of a schema."""

from __future__ import annotations

from typing import Final

from dynactor.storage.postgresql.sql import (
    ACCEPTED,
    CONFLICT,
    FENCED,
    FORMAT_COMMENT,
    INSERT_COLLISION,
    OWNED_BY_ANOTHER,
    TABLES,
    WRITTEN_BEFORE,
    quoted_name,
)

_IS_WRITTEN: Final = "(refused IS NULL OR {0}.call <> ALL(refused))"


def create_members(schema: str) -> str:
    """The statement that creates the table of a cluster's nodes.

    A server alone has no row in it, so earlier versions need not know the table.
    """
    quoted = quoted_name(schema)
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
    quoted = quoted_name(schema)
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
            # Each commit updates a head, so half of each page is left free for new row versions.
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
    quoted = quoted_name(schema)
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
            {_checks(schema)}
            SELECT array_agg(s.call::int) INTO refused
                FROM unnest(said) WITH ORDINALITY AS s(verdict, call) WHERE s.verdict <> {ACCEPTED};
            IF array_length(refused, 1) = array_length(said, 1) THEN RETURN said; END IF;
            FOR at IN 1 .. coalesce(array_length(r_table, 1), 0) LOOP
            IF r_is_discard[at] THEN
                INSERT INTO {schema}.discards (of_table, low, high, low_tail, high_tail, low_prefix)
                VALUES (r_table[at], r_low[at], r_high[at], r_low_tail[at], r_high_tail[at],
                    substring(r_low[at] FOR 2600));
                CONTINUE;
            END IF;{_ranges(schema)}
            END LOOP;
            {_writes(schema)}
            -- Last, because concurrent commits wait for each other here.
            IF v_key <> '{{}}' THEN
                INSERT INTO {schema}.heads AS x (key, value)
                    SELECT v.key, int8send(1) FROM unnest(v_call, v_key) AS v(call, key)
                    WHERE {_IS_WRITTEN.format("v")} ORDER BY v.key
                    ON CONFLICT (key) DO UPDATE SET value = int8send(
                        ('x' || encode(x.value, 'hex'))::bit(64)::bigint + 1);
            END IF;
            RETURN said;
        END $body$;
    """


def _checks(schema: str) -> str:
    """The part of ``commit`` that locks and compares guards and heads: all locks come first."""
    guard_locks, head_locks, checks = [], [], []
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
    return "".join(guard_locks + head_locks + checks)


def _writes(schema: str) -> str:
    """The part of ``commit`` that inserts, deletes and puts rows."""
    inserts, deleted, puts = [], [], []
    for number, name in enumerate(TABLES):
        table = f"{schema}.{name}"
        inserts.append(f"""
            IF mask & {64 << number} <> 0 THEN
                INSERT INTO {table} (key, value, tail, batch)
                    SELECT n.key, coalesce(n.value, ''), n.tail,
                        CASE WHEN n.is_head THEN commit.batch END
                    FROM unnest(n_table, n_call, n_is_head, n_key, n_value, n_tail)
                        AS n(t, call, is_head, key, value, tail)
                    WHERE n.t = {number} AND {_IS_WRITTEN.format("n")} ORDER BY n.key
                    ON CONFLICT DO NOTHING;
                GET DIAGNOSTICS done = ROW_COUNT;
                IF done <> (SELECT count(*) FROM unnest(n_table, n_call) AS n(t, call)
                    WHERE n.t = {number} AND {_IS_WRITTEN.format("n")})
                THEN RAISE EXCEPTION USING ERRCODE = '{INSERT_COLLISION}'; END IF;
            END IF;""")
        deleted.append(f"""
            IF mask & {512 << number} <> 0 THEN
                DELETE FROM {table} WHERE key = ANY(ARRAY(
                    SELECT d.key FROM unnest(d_table, d_call, d_key) AS d(t, call, key)
                    WHERE d.t = {number} AND {_IS_WRITTEN.format("d")}));
            END IF;""")
        puts.append(f"""
            IF mask & {4096 << number} <> 0 THEN
                INSERT INTO {table} (key, value, tail, batch)
                    SELECT p.key, p.value, p.tail, CASE WHEN p.is_head THEN commit.batch END
                    FROM unnest(p_table, p_call, p_is_head, p_key, p_value, p_tail)
                        AS p(t, call, is_head, key, value, tail)
                    WHERE p.t = {number} AND {_IS_WRITTEN.format("p")}
                    ON CONFLICT (key) DO UPDATE
                        SET value = excluded.value, batch = excluded.batch;
            END IF;""")
    return "".join(inserts + deleted + puts)


def _ranges(schema: str) -> str:
    return "".join(
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

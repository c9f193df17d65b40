"""Faults in the order of events around an await, and tests that act between two awaits.

    python -m tests.mutants.orders [name ...]

When code moves, ``file`` and ``old`` must follow: ``tests/architecture/test_mutants.py`` checks
that.
"""

from __future__ import annotations

import sys
from typing import Final

from tests.mutants.fault import Fault
from tests.mutants.run import main

ORDERS: Final = (
    Fault(
        "first change of an item is listed as a later one if an older period has its last change",
        "streams/changes_by_key.py",
        "is_later = self._after < version < self._before",
        "is_later = version < self._before",
        "tests/actors/backups/test_listed_changes.py",
        ["test_the_first_change_of_an_item_in_a_period_is_listed_apart"],
    ),
    Fault(
        "transaction join ignores an index added after prepare",
        "actors/partition/transaction_parts.py",
        "if locked.table is not self._rows.definition:",
        "if False:",
        "tests/actors/transactions/test_transactions_and_new_indexes.py",
        ["test_an_item_locked_while_an_index_was_added_is_in_the_index"],
    ),
    Fault(
        "sweeper sets its swept-before time after reading",
        "actors/derived/expiry/sweeper.py",
        """\
        self._swept_before_us = max(from_us, before_us)
        self._earliest_us = _NEVER
        counter = 0
        async for positions in self._due(first_us, before_us):
""",
        """\
        self._earliest_us = _NEVER
        counter = 0
        due = [positions async for positions in self._due(first_us, before_us)]
        self._swept_before_us = max(from_us, before_us)
        for positions in due:
""",
        "tests/actors/derived/test_times_listed_meanwhile.py",
        ["test_an_item_listed_behind_the_page_being_read_is_deleted_in_the_same_sweep"],
    ),
    Fault(
        "sweeper overwrites a time noticed while it reads",
        "actors/derived/expiry/sweeper.py",
        "self._earliest_us = min(self._earliest_us, listed_us)",
        "self._earliest_us = listed_us",
        "tests/actors/derived/test_times_listed_meanwhile.py",
        ["test_a_future_time_listed_after_its_page_is_kept"],
    ),
    Fault(
        "catalog is loaded while a commit may still be written",
        "actors/database/database_actor.py",
        "await self._owner.settle()",
        "self._owner.is_in_doubt = False",
        "tests/actors/catalog/test_unknown_commits.py",
        ["test_a_late_commit_is_refused_once_the_catalog_was_reloaded"],
    ),
    Fault(
        "partition stops although its split is not known to be committed",
        "actors/partition/partition_actors.py",
        "        except BaseException:\n",
        "        except BaseException:\n            partition.mailbox.hold()\n",
        "tests/actors/catalog/test_unknown_commits.py",
        ["test_a_partition_whose_split_is_unknown_writes_only_if_it_was_not_split"],
    ),
    Fault(
        "partitions build on a round of unknown outcome",
        "actors/transactions/rounds.py",
        'ending = "cancelled" if is_unknown(durable) else "committed"',
        'ending = "committed"',
        "tests/actors/transactions/test_unknown_rounds.py",
        ["test_followers_never_see_a_transaction_that_was_not_written"],
    ),
    Fault(
        "feed tail moves after a failed sync",
        "actors/partition/partition.py",
        "        if failure is None:\n            self._effects.durable(batch)",
        "        self._effects.durable(batch)",
        "tests/actors/partition/test_durability.py",
        ["test_followers_of_a_table_never_see_a_change_whose_sync_failed"],
    ),
    Fault(
        "follower reports the end of its log before storing it",
        "actors/followers/follower.py",
        "        self._move(end)\n        if await",
        "        self._move(end)\n        self.ended.set_result(None)\n        if await",
        "tests/actors/derived/test_subscribers.py",
        [
            "test_a_childs_follower_starts_when_the_end_of_the_parents_log_is_stored",
            "test_a_refused_end_of_a_log_is_stored_before_the_child_starts",
        ],
    ),
    Fault(
        "trimming deletes one record too many",
        "streams/change_log.py",
        "key_layout.change_row(partition_number, up_to + 1),",
        "key_layout.change_row(partition_number, up_to + 2),",
        "tests/streams/test_change_log.py",
        ["test_trimming_deletes_the_records_up_to_a_counter_and_no_others[3]"],
    ),
    Fault(
        "relay drain clears its wake-up after looking at the log",
        "actors/derived/kafka/relay.py",
        """\
                # Clear before the check, so that a round that is published meanwhile is not missed.
                self._has_published.clear()
                # Without another record the position does not move, because the last changes have
                # no records.
                if log.position.counter >= end or await log.first() is None:
                    break
                if self.state not in ("CONNECTING", "PUBLISHING", "SNAPSHOT"):
                    return
""",
        """\
                if log.position.counter >= end or await log.first() is None:
                    break
                if self.state not in ("CONNECTING", "PUBLISHING", "SNAPSHOT"):
                    return
                self._has_published.clear()
""",
        "tests/actors/derived/test_draining.py",
        ["test_a_drain_ends_if_the_last_round_is_published_while_it_reads_the_log"],
    ),
    Fault(
        "destination takes the end of another phase for the end of this one",
        "actors/phases/phase_machine.py",
        "if entered is None or entered.number != message.number:",
        "if entered is None:",
        "tests/actors/derived/test_draining.py",
        ["test_a_destination_disabled_while_it_reaches_its_topic_is_drained"],
    ),
    Fault(
        "drain of a relay that was stopped counts as done",
        "actors/database/database_actor.py",
        "        self._destinations.machine.forget(table_id)\n",
        "",
        "tests/actors/derived/test_draining.py",
        ["test_a_drain_continues_after_a_crash_of_the_databases_actor"],
    ),
    Fault(
        "index catches up although a follower was given up",
        "actors/indexes/global_index.py",
        "self.follows_all = has_passed and not self._is_closing",
        "self.follows_all = not self._is_closing",
        "tests/actors/derived/test_given_up_followers.py",
        ["test_an_index_with_an_abandoned_follower_does_not_catch_up"],
    ),
    Fault(
        "time to live catches up although an expirer was given up",
        "actors/derived/expiry/time_to_live.py",
        "return have_passed and not self._is_closing",
        "return not self._is_closing",
        "tests/actors/derived/test_given_up_followers.py",
        ["test_time_to_live_with_an_abandoned_expirer_does_not_catch_up"],
    ),
    Fault(
        "partition keeps its counts after a lost commit",
        "actors/partition/partition.py",
        """\
                continue
            await self._load_head()
""",
        """\
                continue
            (self._head_bytes,) = await self._store.latest.load([self._head_key])
""",
        "tests/actors/transactions/test_lost_commits.py",
        [
            "test_item_counts_continue_from_the_stored_state",
        ],
    ),
    Fault(
        "partition keeps its holds after a lost commit",
        "actors/partition/partition.py",
        """\
        self._core.forget()
        self._effects.forget()
""",
        "",
        "tests/actors/transactions/test_lost_commits.py",
        [
            "test_a_transaction_prepared_on_a_lost_item_is_not_joined",
        ],
    ),
    Fault(
        "token is in use only after the store was asked",
        "actors/transactions/client_tokens.py",
        """\
        self._running[token] = digest
        try:
            return await self._looked_up(token, digest)
        except BaseException:
            del self._running[token]
            raise""",
        """\
        claim = await self._looked_up(token, digest)
        self._running[token] = digest
        return claim""",
        "tests/actors/transactions/test_client_tokens.py",
        [
            "test_a_token_is_in_progress_while_the_store_is_read_for_it",
        ],
    ),
    Fault(
        "token that is not durable counts",
        "actors/transactions/client_tokens.py",
        """\
            if found != _NONE:
                found = await self._store.durable().load(rows)
""",
        "",
        "tests/actors/transactions/test_client_tokens.py",
        [
            "test_a_token_of_a_transaction_that_never_became_durable_counts_as_new",
        ],
    ),
    Fault(
        "follower waits where the log has no records up to its tail",
        "actors/followers/follower.py",
        """\
            elif run.tail.counter > self.position:
                # Changes that the sink may miss were trimmed.
                self._move(run.tail)
""",
        "",
        "tests/actors/derived/test_subscribers.py",
        [
            "test_a_change_recorded_while_a_follower_reads_the_disk_wakes_it",
        ],
    ),
    Fault(
        "follower takes its checkpoint for stored before the commit",
        "actors/followers/stored_checkpoint.py",
        """\
        group = Group(self._key, self.value, value, puts, deletes)
        try:
""",
        """\
        group = Group(self._key, self.value, value, puts, deletes)
        self.value = value
        try:
""",
        "tests/actors/derived/test_subscribers.py",
        [
            "test_a_refused_end_of_a_log_is_stored_before_the_child_starts",
        ],
    ),
    Fault(
        "partition that crashed forgets the round it joined",
        "actors/partition/participant.py",
        """\
        if self._joining is not None:
            await self._resolve(partition, self._joining)
""",
        "        del partition\n",
        "tests/actors/transactions/test_joined_partitions.py",
        [
            "test_a_partition_that_crashes_before_the_outcome_is_known_applies_it",
        ],
    ),
    Fault(
        "partition that crashed waits for an outcome it had",
        "actors/partition/participant.py",
        """\
        # The outcome is sent once, so after a crash from here on, don't wait for it again.
        self._joining = None
        if decision.committed:""",
        "        if decision.committed:",
        "tests/actors/transactions/test_joined_partitions.py",
        [
            "test_a_partition_that_crashes_after_the_outcome_is_known_applies_it",
        ],
    ),
    Fault(
        "reader looks where a shard ends after reading",
        "actors/catalog/streams.py",
        """\
        last = self.tail(shard)
        feed = self._feeds.get(shard.partition_number)
        if feed is None:
            records = await change_log.read(
                self._store.durable(),
                shard.partition_number,
                max(after, shard.after),
                max_records=max_records,
                max_bytes=max_bytes,
            )
        else:
            records = await feed.read(
                max(after, shard.after), max_records=max_records, max_bytes=max_bytes
            )
""",
        """\
        feed = self._feeds.get(shard.partition_number)
        if feed is None:
            records = await change_log.read(
                self._store.durable(),
                shard.partition_number,
                max(after, shard.after),
                max_records=max_records,
                max_bytes=max_bytes,
            )
        else:
            records = await feed.read(
                max(after, shard.after), max_records=max_records, max_bytes=max_bytes
            )
        last = self.tail(shard)
""",
        "tests/actors/derived/test_stream_steps.py",
        [
            "test_a_shard_closed_during_a_read_shows_no_record_of_its_child",
        ],
    ),
    Fault(
        "open shard shows records behind the end being stored",
        "actors/catalog/streams.py",
        """\
            with self.closing(kept):
                await self._replace(kept)""",
        "            await self._replace(kept)",
        "tests/actors/derived/test_stream_steps.py",
        [
            "test_an_open_shard_shows_no_record_after_an_end_that_is_being_stored",
        ],
    ),
    Fault(
        "roll shows before it is stored",
        "actors/catalog/streams.py",
        """\
        await self._owner.change(puts=[stream_row(stream)])
        self.remember(stream)""",
        """\
        self.remember(stream)
        await self._owner.change(puts=[stream_row(stream)])""",
        "tests/actors/derived/test_stream_steps.py",
        [
            "test_a_roll_of_a_shard_that_the_store_refuses_is_not_visible",
        ],
    ),
    Fault(
        "readers learn of trimming after the records are gone",
        "actors/catalog/streams.py",
        """\
                self.remember(kept)
        with self._as_before(before):
            await self._owner.change(
                heads=[Group(key, stored, value)],
                puts=[*map(stream_row, changed), *puts],
                discards=[change_log.trimmed_range(feed.partition_number, floor)],
                raises_version=bool(changed),
            )
""",
        """\
        with self._as_before(before):
            await self._owner.change(
                heads=[Group(key, stored, value)],
                puts=[*map(stream_row, changed), *puts],
                discards=[change_log.trimmed_range(feed.partition_number, floor)],
                raises_version=bool(changed),
            )
        for kept in changed:
            self.remember(kept)
""",
        "tests/actors/derived/test_stream_steps.py",
        [
            "test_readers_are_notified_of_trimming_before_records_are_deleted",
        ],
    ),
    Fault(
        "refused trimming is not undone for readers",
        "actors/catalog/streams.py",
        """\
        with self._as_before(before):
            await self._owner.change(
                heads=[Group(key, stored, value)],""",
        """\
        with self._as_before([]):
            await self._owner.change(
                heads=[Group(key, stored, value)],""",
        "tests/actors/derived/test_stream_steps.py",
        [
            "test_trimming_that_the_store_refuses_is_undone_for_readers",
        ],
    ),
    Fault(
        "expired stream is gone for readers after its records",
        "actors/catalog/streams.py",
        """\
            with self._as_before([stream]):
                await self._owner.change(
                    deletes=[key_layout.stream(stream.table_id, stream.label)],
                    discards=[key_layout.change_range(number) for number in orphaned],
                )
""",
        """\
            self.remember(stream)
            await self._owner.change(
                deletes=[key_layout.stream(stream.table_id, stream.label)],
                discards=[key_layout.change_range(number) for number in orphaned],
            )
            del self._streams[stream.table_name, stream.label]
""",
        "tests/actors/derived/test_stream_steps.py",
        [
            "test_an_expired_stream_is_removed_for_readers_before_its_records_are_deleted",
        ],
    ),
    Fault(
        "stream being disabled shows records behind its end",
        "actors/phases/table_changes.py",
        "during=self._streams.closing(stream) if stream else nullcontext(),",
        "during=nullcontext(),",
        "tests/actors/derived/test_stream_steps.py",
        [
            "test_a_stream_that_is_being_disabled_shows_no_record_after_its_end",
        ],
    ),
    Fault(
        "split shows in streams before it is stored",
        "actors/splitting/splits.py",
        """\
            await self._owner.put(
                split.record,
""",
        """\
            for stream in split.streams:
                self._streams.remember(stream)
            await self._owner.put(
                split.record,
""",
        "tests/actors/derived/test_stream_steps.py",
        [
            "test_a_split_that_the_store_refuses_leaves_the_shards_as_they_were",
        ],
    ),
    Fault(
        "partition stops before its last write is answered",
        "actors/partition/partition.py",
        """\
        if self._last_commit is not None and not self._last_commit.done():
            await asyncio.wait([self._last_commit])
""",
        "",
        "tests/actors/partition/test_durability.py",
        [
            "test_closing_a_table_waits_until_its_last_write_is_answered",
        ],
    ),
    Fault(
        "feed tail moves when a partition restarts before a sync",
        "actors/partition/table_partition.py",
        "self._feed.begin_once(head.counter, head.logged_bytes)",
        "self._feed.begin(head.counter, head.logged_bytes)",
        "tests/actors/partition/test_durability.py",
        [
            "test_the_tail_of_a_log_does_not_move_when_a_partition_restarts_before_a_sync",
        ],
    ),
    Fault(
        "split does not compare the head of its parent",
        "actors/splitting/splits.py",
        "                    ended_head(parent, heads[parent]),\n"
        "                    *map(new_head, split.children, head.divided(message.share)),\n"
        "                ],\n",
        "                    *map(new_head, split.children, head.divided(message.share)),\n"
        "                ],\n"
        "                deletes=[key_layout.partition_head(parent)],\n",
        "tests/actors/catalog/test_splits.py",
        ["test_a_log_ends_with_the_last_write_before_the_commit_of_the_split"],
    ),
    Fault(
        "split makes children beside its parent",
        "actors/splitting/splits.py",
        "                    ended_head(parent, heads[parent]),\n",
        "",
        "tests/actors/catalog/test_splits.py",
        ["test_a_log_ends_with_the_last_write_before_the_commit_of_the_split"],
    ),
    Fault(
        "messages of a split partition change their order",
        "actors/partition/partition_actors.py",
        "left = partition.in_progress + partition.mailbox.drain()",
        "left = partition.mailbox.drain() + partition.in_progress",
        "tests/actors/catalog/test_splits.py",
        ["test_writes_during_the_sync_of_a_split_are_executed_in_order_by_the_children"],
    ),
    Fault(
        "prepared transaction is not repeated after a split",
        "actors/transactions/coordinator.py",
        "            with suppress(PartitionMoved):\n"
        "                return await self._write_once(actions, claim)\n",
        "            return await self._write_once(actions, claim)\n",
        "tests/actors/transactions/test_transaction_splits.py",
        [
            "test_a_prepared_transaction_is_decided_again_after_a_split",
            "test_a_joined_transaction_whose_partition_is_split_is_written_once",
        ],
    ),
    Fault(
        "follower keeps a checkpoint that conflicts",
        "actors/followers/stored_checkpoint.py",
        """\
        while (outcome := await self.commit(value, stopped)) is Outcome.CHANGED:
            pass
""",
        """\
        outcome = await self.commit(value, stopped)
""",
        "tests/actors/derived/test_subscribers.py",
        [
            "test_the_end_of_a_log_is_stored_although_the_store_has_another_checkpoint",
        ],
    ),
    Fault(
        "change of a table does not compare the heads of its partitions",
        "actors/catalog/definition_commit.py",
        "heads=[*raised, *stored.heads]",
        "heads=stored.heads",
        "tests/actors/catalog/test_definition_versions.py",
        ["test_a_write_under_the_old_definition_is_decided_again"],
    ),
    Fault(
        "partition keeps to a definition that its head no longer names",
        "actors/partition/partition.py",
        "            await self._definition.follow(head.definition_version, self._rows)\n",
        "            pass\n",
        "tests/actors/catalog/test_definition_versions.py",
        ["test_a_write_under_the_old_definition_is_decided_again"],
    ),
    Fault(
        "definition shows before it is stored",
        "actors/catalog/definition_commit.py",
        "        with stored.during:\n",
        "        table.record = stored.record\n        with stored.during:\n",
        "tests/actors/catalog/test_refused_changes.py",
        [
            "test_a_destination_whose_disabling_was_refused_misses_no_change",
            "test_time_to_live_whose_disabling_was_refused_is_shown_as_enabled",
        ],
    ),
    Fault(
        "setting shows before it is stored",
        "actors/catalog/definition_commit.py",
        """\
    balances = table.throttle.rows_before(definition)
    await owner.put(record, puts=balances, range_deletes=range_deletes)
    table.record = record""",
        """\
    balances = table.throttle.rows_before(definition)
    table.record = record
    await owner.put(record, puts=balances, range_deletes=range_deletes)""",
        "tests/actors/catalog/test_refused_changes.py",
        [
            "test_a_setting_whose_change_was_refused_is_shown_as_before",
        ],
    ),
    Fault(
        "catalog builds on a change that was lost",
        "actors/catalog/catalog_owner.py",
        """\
            try:
                await durable
""",
        """\
            self._writer_bytes = writer_bytes
            try:
                await durable
""",
        "tests/actors/catalog/test_refused_changes.py",
        [
            "test_the_catalog_can_be_changed_after_a_change_was_lost",
        ],
    ),
    Fault(
        "backup is copied before it is stored",
        "actors/backups/table_backups.py",
        """\
        puts = [table_backups.row(backup), *also]
        await self._record(table, backup, is_new=True, puts=puts, past=past)
        self._backups[backup.backup_id] = backup
        await self.machine.resume(_subject(backup))
""",
        """\
        self._backups[backup.backup_id] = backup
        await self.machine.resume(_subject(backup))
        puts = [table_backups.row(backup), *also]
        await self._record(table, backup, is_new=True, puts=puts, past=past)
""",
        "tests/actors/catalog/test_refused_changes.py",
        [
            "test_no_row_is_copied_for_a_backup_whose_record_was_refused",
        ],
    ),
    Fault(
        "sweeper forgets late items that the store refused",
        "actors/derived/expiry/sweeper.py",
        """\
                self._late.update(dict.fromkeys(positions))
                raise""",
        "                raise",
        "tests/actors/derived/test_times_listed_meanwhile.py",
        [
            "test_an_item_listed_late_whose_deletion_failed_is_deleted_in_the_next_sweep",
        ],
    ),
    Fault(
        "sweeper that crashed trusts what it had swept",
        "actors/derived/expiry/sweeper.py",
        """\
        self._swept_before_us = -_NEVER
        self._late.clear()
        while""",
        """\
        self._late.clear()
        while""",
        "tests/actors/derived/test_times_listed_meanwhile.py",
        [
            "test_items_that_a_crashed_sweep_missed_are_deleted_after_the_restart",
        ],
    ),
    Fault(
        "index counts what its backfill has seen once more",
        "actors/indexes/global_index.py",
        """\
        has_passed = await self._maintainers.wait_caught_up()
        self.follows_all = has_passed and not self._is_closing
""",
        """\
        self.follows_all = not self._is_closing
        await self._maintainers.wait_caught_up()
""",
        "tests/actors/derived/test_index_steps.py",
        ["test_changes_before_the_backfill_are_not_counted_twice"],
    ),
    Fault(
        "list of expiry times misses a page that was lost",
        "actors/followers/stored_checkpoint.py",
        """\
            return Outcome.STORED if await self.load() == value else Outcome.CHANGED
""",
        """\
            await self.load()
            self.value = value
            return Outcome.STORED
""",
        "tests/actors/transactions/test_lost_commits.py",
        [
            "test_expiry_times_of_a_lost_page_are_listed_again",
        ],
    ),
    Fault(
        "time to live stops before that is stored",
        "actors/phases/time_to_live_phases.py",
        """\
            await definition_commit.redefine(self._owner, table, definition)
            await table.followers.detach(subscriber_id(table))
""",
        """\
            await table.followers.detach(subscriber_id(table))
            await definition_commit.redefine(self._owner, table, definition)
""",
        "tests/actors/catalog/test_refused_changes.py",
        [
            "test_time_to_live_whose_disabling_was_refused_is_shown_as_enabled",
        ],
    ),
    Fault(
        "index is active before its followers have caught up",
        "actors/phases/index_phases.py",
        """\
    await actors.wait_caught_up()
    # Don't end the phase""",
        """\
    actors.follows_all = True
    # Don't end the phase""",
        "tests/actors/derived/test_index_steps.py",
        [
            "test_an_index_is_not_active_before_its_followers_have_caught_up",
        ],
    ),
    Fault(
        "reader looks whether a log ended after reading it",
        "actors/followers/followed_log.py",
        """\
        tail, end = Checkpoint(self.feed.tail, self.feed.logged_bytes), self.end
        records = await self.feed.read(after.counter, max_records=max_records, max_bytes=max_bytes)
""",
        """\
        records = await self.feed.read(after.counter, max_records=max_records, max_bytes=max_bytes)
        tail, end = Checkpoint(self.feed.tail, self.feed.logged_bytes), self.end
""",
        "tests/actors/kafka/test_publishing_steps.py",
        [
            "test_a_relay_publishes_the_last_change_of_a_log_that_ends_while_it_reads",
            "test_a_replay_publishes_the_last_change_of_a_log_that_ends_while_it_reads",
        ],
    ),
    Fault(
        "follower looks whether its log ended after reading",
        "actors/followers/followed_log.py",
        """\
        tail, end = Checkpoint(self.feed.tail, self.feed.logged_bytes), self.end
        records = await self.feed.read(after.counter, max_records=max_records, max_bytes=max_bytes)
""",
        """\
        records = await self.feed.read(after.counter, max_records=max_records, max_bytes=max_bytes)
        tail, end = Checkpoint(self.feed.tail, self.feed.logged_bytes), self.end
""",
        "tests/actors/derived/test_subscribers.py",
        [
            "test_a_log_that_ends_while_a_follower_reads_the_disk_is_followed_to_its_end",
        ],
    ),
    Fault(
        "reader of several logs keeps a checkpoint that conflicts",
        "actors/followers/stored_checkpoint.py",
        """\
        for each in values:
            await each.load()
""",
        "",
        "tests/actors/kafka/test_publishing_steps.py",
        [
            "test_a_relay_stores_its_checkpoint_although_the_store_has_another_one",
        ],
    ),
    Fault(
        "follower of several logs counts additions after reading",
        "actors/followers/round_follower.py",
        """\
        seen = self.logs.seen()
        if self._round is None:
            self._round = await self._next()
""",
        """\
        if self._round is None:
            self._round = await self._next()
        seen = self.logs.seen()
""",
        "tests/actors/kafka/test_publishing_steps.py",
        [
            "test_a_replay_publishes_a_change_that_is_recorded_while_it_reads",
        ],
    ),
    Fault(
        "child's log is read before the end of its parent's is stored",
        "actors/followers/followed_logs.py",
        "return parent is None or (parent.is_end_stored and self._is_open(parent))",
        "return parent is None or (parent.is_whole and self._is_open(parent))",
        "tests/actors/followers/test_followed_logs.py",
        [
            "test_a_childs_log_is_opened_once_the_end_of_the_parents_log_is_stored",
        ],
    ),
    Fault(
        "replay starts without stored checkpoints",
        "actors/phases/replays.py",
        "puts=first_checkpoints(subscriber, first, logged_bytes),",
        "puts=(),",
        "tests/actors/kafka/test_replay.py",
        [
            "test_a_replay_stores_checkpoints_before_it_starts_and_deletes_them_at_its_end",
        ],
    ),
    Fault(
        "children of a split get no checkpoints of those who follow them",
        "actors/splitting/splits.py",
        "rows += [Row(*each) for each in table.followers.first_checkpoints(children)]",
        "pass",
        "tests/actors/kafka/test_replay.py",
        [
            "test_a_replay_stores_checkpoints_before_it_starts_and_deletes_them_at_its_end",
        ],
    ),
    Fault(
        "trimming waits for a sink that may miss changes",
        "actors/table/followers.py",
        "if may_miss and following.contract.must_accept_gap(lag_bytes):",
        "if False:",
        "tests/actors/derived/test_trim_delay.py",
        [
            "test_a_log_is_trimmed_although_a_sink_that_may_miss_changes_is_blocked",
        ],
    ),
    Fault(
        "snapshot takes positions of a later moment than its items",
        "actors/followers/table_snapshot.py",
        """\
            ends = await log_positions.ends(view, record)
""",
        """\
            ends = await log_positions.ends(store.durable(), record)
""",
        "tests/actors/kafka/test_publishing_steps.py",
        [
            "test_a_snapshot_has_the_positions_of_the_logs_at_its_reads",
        ],
    ),
    Fault(
        "past state is read although its changes may be trimmed meanwhile",
        "actors/backups/past_reads.py",
        """\
                raise unreadable(tables[0].definition.name, error) from error
        # The end""",
        """\
                raise unreadable(tables[0].definition.name, error) from error
        return
        # The end""",
        "tests/actors/backups/test_past_reads.py",
        ["test_a_read_is_refused_if_its_time_leaves_the_window_meanwhile"],
    ),
    Fault(
        "past state lacks writes in flight at its time",
        "actors/backups/past_reads.py",
        "        await (await self._store.commit([]))\n",
        "",
        "tests/actors/backups/test_past_reads.py",
        ["test_a_write_in_flight_before_the_time_is_read"],
    ),
    Fault(
        "destination is active before the end of its snapshot is stored",
        "actors/followers/round_follower.py",
        """\
            await self.logs.try_store()
            self._on_current()
""",
        """\
            self._on_current()
            await self.logs.try_store()
""",
        "tests/actors/kafka/test_publishing_steps.py",
        [
            "test_a_destination_is_active_once_the_positions_of_its_snapshot_are_stored",
        ],
    ),
    Fault(
        "shared publisher is opened while the last one closes",
        "actors/derived/kafka/shared_publisher.py",
        """\
                self._publisher = None
                await publisher.close()

    async def close""",
        """\
                self._publisher = None
        await publisher.close()

    async def close""",
        "tests/actors/kafka/test_publishing_steps.py",
        [
            "test_a_shared_publisher_is_opened_only_when_the_previous_one_is_closed",
        ],
    ),
    Fault(
        "mailbox gives out nothing although it is open",
        "actors/runtime/mailbox.py",
        """\
        while not self._waiting:
            if self.closed or self.is_held:""",
        """\
        if not self._waiting:
            if self.closed or self.is_held:""",
        "tests/actors/runtime/test_mailbox.py",
        [
            "test_a_receiver_keeps_waiting_if_the_message_that_woke_it_was_withdrawn",
        ],
    ),
    Fault(
        "relay of a destination stops before its cut-off is stored",
        "actors/phases/destination_phases.py",
        """\
        await self._put(
            table,
            rules.with_destination(table.definition, broken),
            forgotten=subscriber,
        )
        await table.followers.detach(subscriber)
        await self.machine.resume(_subject(table.definition, broken))
""",
        """\
        await table.followers.detach(subscriber)
        await self._put(
            table,
            rules.with_destination(table.definition, broken),
            forgotten=subscriber,
        )
        await self.machine.resume(_subject(table.definition, broken))
""",
        "tests/actors/catalog/test_refused_changes.py",
        [
            "test_a_destination_whose_cut_off_was_refused_continues",
        ],
    ),
    Fault(
        "scan moves its cursor before its messages are carried out",
        "actors/followers/scan.py",
        """\
            if not await self._wait_durable(page, stopped):
                return False
            self._in_flight.popleft()
""",
        """\
            self._in_flight.popleft()
""",
        "tests/actors/followers/test_scan.py",
        ["test_refused_messages_are_sent_again"],
    ),
    Fault(
        "scan ends while its messages are in flight",
        "actors/followers/scan.py",
        "            await outcomes(sent)",
        "            del sent",
        "tests/actors/followers/test_scan.py",
        ["test_no_message_is_in_flight_when_a_scan_has_ended"],
    ),
    Fault(
        "copy keeps rows of an earlier attempt",
        "actors/followers/table_copy.py",
        "self._next_value(), [self._sink.target]",
        "self._next_value(), []",
        "tests/actors/followers/test_table_copy.py",
        ["test_a_copy_deletes_the_rows_of_an_earlier_one"],
    ),
    Fault(
        "phase is started again by each change",
        "actors/phases/phase_machine.py",
        "if entered is None or self._stored_name(entered.name) != stored:",
        "if True:",
        "tests/actors/phases/test_phase_machine.py",
        ["test_each_phase_is_started_once_and_stored_before"],
    ),
    Fault(
        "phase that could not be started is left once more",
        "actors/phases/phase_machine.py",
        "        if name == self._stored_name(entered.name):\n",
        "        if True:\n",
        "tests/actors/phases/test_phase_machine.py",
        ["test_a_phase_whose_start_failed_is_started_with_the_next_message"],
    ),
    Fault(
        "phases of a table outlive what they had at work",
        "actors/phases/phase_machine.py",
        "if table_id is None or subject.table_id == table_id:",
        "if table_id is None:",
        "tests/actors/phases/test_phase_machine.py",
        ["test_forgotten_phases_are_entered_again"],
    ),
    Fault(
        "long page of a Query goes on from a later state",
        "actors/table/pages.py",
        "return _read_on(table, request, of_index, view, rows)",
        "return read_page(table, request)",
        "tests/actors/table/test_pages_at_once.py",
        ["test_a_long_page_shows_the_moment_when_it_began"],
    ),
    Fault(
        "two commits of the catalog have the same head",
        "actors/catalog/catalog_owner.py",
        'self._writer_bytes or b"", "big") + 1',
        'self._writer_bytes or b"", "big")',
        "tests/actors/catalog/test_unknown_commits.py",
        ["test_a_late_commit_is_refused_once_the_catalog_was_reloaded"],
    ),
    Fault(
        "sweeper tries on although its partition has another owner",
        "actors/derived/expiry/sweeper.py",
        "                if is_fenced(error):\n                    raise\n",
        "",
        "tests/actors/derived/test_fenced_work.py",
        ["test_a_sweeper_stops_when_it_is_fenced"],
    ),
    Fault(
        "a page of a namespace goes on into the next one",
        "storage/namespaces.py",
        "return prefix + start[1:], key_layout.end_of(prefix)",
        "return prefix + start[1:], self._prefixes[start[0] + 1]",
        "tests/storage/test_namespaces.py",
        ["test_a_page_ends_with_its_namespace"],
    ),
    Fault(
        "an open namespace still counts as one that is being opened",
        "actors/database/databases.py",
        "del self._opening[namespace]",
        "pass",
        "tests/actors/database/test_databases.py",
        ["test_the_server_keeps_a_bounded_number_of_namespaces"],
    ),
    Fault(
        "a reset forgets that regions are apart",
        "api/hosting/database_host.py",
        'if self._opening.separation != "shared":',
        "if False:",
        "tests/wire/regions/test_regions_on_disk.py",
        ["test_a_reset_directory_still_keeps_its_regions_apart"],
    ),
    Fault(
        "a write is sent to the next home after its answer was lost",
        "api/nodes/forwarding.py",
        "if not is_read(request.target):",
        "if False:",
        "tests/api/nodes/test_failover.py",
        ["test_a_write_whose_answer_is_lost_is_unknown_and_not_repeated"],
    ),
    Fault(
        "the leader takes tables of a node that may still write them",
        "api/nodes/spreading.py",
        "if await self._store.fence(epoch, only_ended=not is_out):",
        "if True:",
        "tests/api/nodes/test_homes.py",
        ["test_a_suspended_home_writes_nothing_after_its_tables_have_another_home"],
    ),
    Fault(
        "the leader never takes the tables of a node that it is cut off from",
        "api/nodes/spreading.py",
        "is_out = self._links.is_cut_off(member)",
        "is_out = False",
        "tests/api/nodes/test_homes.py",
        ["test_the_leader_takes_the_tables_of_a_node_that_it_is_cut_off_from"],
    ),
    Fault(
        "a table moves while requests to it are in flight",
        "api/nodes/runner.py",
        "while any(self._running[name] for name in names):",
        "while False:",
        "tests/api/nodes/test_drained_tables.py",
        ["test_a_table_is_drained_when_its_last_request_has_ended"],
    ),
    Fault(
        "a relay publishes before the store has confirmed that it is at the table's home",
        "actors/followers/round_follower.py",
        "await self._source.store.latest.load([key_layout.CATALOG_VERSION])",
        "pass",
        "tests/actors/catalog/test_work_at_homes.py",
        ["test_a_former_home_that_resumes_publishes_nothing"],
    ),
    Fault(
        "a partition forgets the time of the last change",
        "actors/partition/table_core.py",
        "if head.counter and self.records_changes:",
        "if False:",
        "tests/actors/catalog/test_work_at_homes.py",
        ["test_times_of_changes_never_go_back_if_the_clock_of_the_next_home_is_behind"],
    ),
    Fault(
        "renewals between the regular ones count as missed beats",
        "model/members.py",
        "still + is_regular if",
        "still + 1 if",
        "tests/api/nodes/test_members.py",
        ["test_renewals_between_the_regular_ones_do_not_count"],
    ),
    Fault(
        "a forwarded request has lost the address of its client",
        "api/nodes/frames.py",
        "            self.client,\n",
        "",
        "tests/api/nodes/test_frames.py",
        ["test_all_parts_of_a_request_arrive"],
    ),
)

if __name__ == "__main__":
    sys.exit(main(ORDERS))

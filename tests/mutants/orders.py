"""Statements moved past an await, and tests that act between two awaits.

    python -m tests.mutants.orders [name ...]

The program that draws faults changes single lines, so it can't draw these. When a function or one
of its statements gets another name, the names here must follow:
``tests/architecture/test_mutants.py`` checks that.
"""

from __future__ import annotations

import sys
from typing import Final

from tests.mutants.order import Order
from tests.mutants.run import main

ORDERS: Final = (
    Order(
        "sweeper sets its swept-before time after reading",
        "actors/derived/expiry/sweeper.py",
        "Sweeper._sweep",
        "self._swept_before_us =",
        "tests/actors/derived/expiry/test_times_listed_meanwhile.py",
        ["test_an_item_listed_behind_the_page_being_read_is_deleted_in_the_same_sweep"],
        after="async for positions",
    ),
    Order(
        "follower reports the end of its log before storing it",
        "actors/followers/partition_follower.py",
        "PartitionFollower._end",
        "self.ended.set_result",
        "tests/actors/followers/test_subscribers.py",
        [
            "test_a_childs_follower_starts_when_the_end_of_the_parents_log_is_stored",
            "test_a_refused_end_of_a_log_is_stored_before_the_child_starts",
        ],
        before="if await self.log.store_end",
    ),
    Order(
        "follower takes its checkpoint for stored before the commit",
        "actors/followers/stored_checkpoint.py",
        "StoredCheckpoint.commit",
        "self.value = value",
        "tests/actors/followers/test_subscribers.py",
        ["test_a_refused_end_of_a_log_is_stored_before_the_child_starts"],
        before="try:",
    ),
    Order(
        "follower looks whether its log ended after reading",
        "actors/followers/log_progress.py",
        "LogProgress.read",
        "tail, end =",
        "tests/actors/followers/test_subscribers.py",
        ["test_a_log_that_ends_while_a_follower_reads_the_disk_is_followed_to_its_end"],
        after="records = await",
    ),
    Order(
        "reader looks whether a log ended after reading it",
        "actors/followers/log_progress.py",
        "LogProgress.read",
        "tail, end =",
        "tests/actors/derived/kafka/test_publishing_steps.py",
        [
            "test_a_relay_publishes_the_last_change_of_a_log_that_ends_while_it_reads",
            "test_a_replay_publishes_the_last_change_of_a_log_that_ends_while_it_reads",
        ],
        after="records = await",
    ),
    Order(
        "follower of several logs counts additions after reading",
        "actors/followers/round_follower.py",
        "RoundFollower._step",
        "seen = self.logs.seen",
        "tests/actors/derived/kafka/test_publishing_steps.py",
        ["test_a_replay_publishes_a_change_that_is_recorded_while_it_reads"],
        after="if self._round is None",
    ),
    Order(
        "destination is active before the end of its snapshot is stored",
        "actors/followers/round_follower.py",
        "RoundFollower._next",
        "self._on_current",
        "tests/actors/derived/kafka/test_publishing_steps.py",
        ["test_a_destination_is_active_once_the_positions_of_its_snapshot_are_stored"],
        before="await self.logs.try_store",
    ),
    Order(
        "shared publisher is opened while the last one closes",
        "actors/derived/kafka/shared_publisher.py",
        "SharedPublisher.discard",
        "await publisher.close",
        "tests/actors/derived/kafka/test_publishing_steps.py",
        ["test_a_shared_publisher_is_opened_only_when_the_previous_one_is_closed"],
        after="async with self._lock",
    ),
    Order(
        "relay drain clears its wake-up after looking at the log",
        "actors/derived/kafka/relay.py",
        "KafkaRelay.drain",
        "self._has_published.clear",
        "tests/actors/derived/kafka/test_draining.py",
        ["test_a_drain_ends_if_the_last_round_is_published_while_it_reads_the_log"],
        after="if log.position.counter >= end or await log.first()",
    ),
    Order(
        "relay of a destination stops before its cut-off is stored",
        "actors/phases/destination_phases.py",
        "DestinationPhases._cut_off",
        "await table.followers.detach",
        "tests/actors/catalog/test_refused_changes.py",
        ["test_a_destination_whose_cut_off_was_refused_continues"],
        before="await self._put",
    ),
    Order(
        "token is not in use while the store is read for it",
        "actors/transactions/client_tokens.py",
        "ClientTokens.claim",
        "self._running[token] = digest",
        "tests/actors/transactions/test_client_tokens.py",
        ["test_a_token_is_in_progress_while_the_store_is_read_for_it"],
        after="try:",
    ),
    Order(
        "partition that crashed waits for an outcome it had",
        "actors/partition/participant.py",
        "Participant._resolve",
        "self._joining = None",
        "tests/actors/transactions/test_joined_partitions.py",
        ["test_a_partition_that_crashes_after_the_outcome_is_known_applies_it"],
        after="if decision.committed",
    ),
    Order(
        "partition stops before its last write is answered",
        "actors/partition/partition.py",
        "Partition.run",
        "if self._last_commit is not None",
        "tests/actors/partition/test_durability.py",
        ["test_closing_a_table_waits_until_its_last_write_is_answered"],
        before="while not await self._try_load_head",
    ),
    Order(
        "reader looks where a shard ends after reading",
        "actors/phases/streams.py",
        "StreamRegistry.read",
        "last = self.tail",
        "tests/actors/phases/test_stream_steps.py",
        ["test_a_shard_closed_during_a_read_shows_no_record_of_its_child"],
        after="if feed is None",
    ),
    Order(
        "open shard shows records behind the end being stored",
        "actors/phases/streams.py",
        "StreamRegistry._roll",
        "await self._replace",
        "tests/actors/phases/test_stream_steps.py",
        ["test_an_open_shard_shows_no_record_after_an_end_that_is_being_stored"],
        before="with self.ending",
    ),
    Order(
        "roll shows before it is stored",
        "actors/phases/streams.py",
        "StreamRegistry._replace",
        "self.remember",
        "tests/actors/phases/test_stream_steps.py",
        ["test_a_roll_of_a_shard_that_the_store_refuses_is_not_visible"],
        before="await self._owner.change",
    ),
    Order(
        "readers learn of trimming after the records are gone",
        "actors/phases/streams.py",
        "StreamRegistry.trim",
        "self.remember",
        "tests/actors/phases/test_stream_steps.py",
        ["test_readers_are_notified_of_trimming_before_records_are_deleted"],
        after="with self._as_before",
    ),
    Order(
        "expired stream is gone for readers after its records",
        "actors/phases/streams.py",
        "StreamRegistry._expire",
        "del self._streams",
        "tests/actors/phases/test_stream_steps.py",
        ["test_an_expired_stream_is_removed_for_readers_before_its_records_are_deleted"],
        after="with self._as_before",
    ),
    Order(
        "split shows in streams before it is stored",
        "actors/phases/splits.py",
        "Splitter._split",
        "for stream in split.streams",
        "tests/actors/phases/test_stream_steps.py",
        ["test_a_split_that_the_store_refuses_leaves_the_shards_as_they_were"],
        before="await self._owner.put",
        other_function="Splitter._commit",
    ),
    Order(
        "setting shows before it is stored",
        "actors/catalog/definition_commit.py",
        "store",
        "table.record = record",
        "tests/actors/catalog/test_refused_changes.py",
        ["test_a_setting_whose_change_was_refused_is_shown_as_before"],
        before="await owner.put",
    ),
    Order(
        "catalog builds on a change that was lost",
        "actors/catalog/catalog_owner.py",
        "CatalogOwner._commit",
        "self._writer_bytes = writer_bytes",
        "tests/actors/catalog/test_refused_changes.py",
        ["test_the_catalog_can_be_changed_after_a_change_was_lost"],
        before="try:",
    ),
    Order(
        "backup is copied before it is stored",
        "actors/backups/table_backups.py",
        "TableBackups._begin",
        "await self._record",
        "tests/actors/catalog/test_refused_changes.py",
        ["test_no_row_is_copied_for_a_backup_whose_record_was_refused"],
        after="await self._machine.resume",
    ),
    Order(
        "time to live stops before that is stored",
        "actors/phases/time_to_live_phases.py",
        "TimeToLivePhases._change",
        "await table.followers.detach",
        "tests/actors/catalog/test_refused_changes.py",
        ["test_time_to_live_whose_disabling_was_refused_is_shown_as_enabled"],
        before="await definition_commit.redefine",
    ),
)

if __name__ == "__main__":
    sys.exit(main(ORDERS))

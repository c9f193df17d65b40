"""Faults in the order of events around an await, and the tests that step between two awaits.

    python -m tests.mutants.orders [name ...]

When code moves, ``file`` and ``old`` must follow: ``tests/architecture/test_mutants.py`` says so.
"""

from __future__ import annotations

import sys
from typing import Final

from tests.mutants.fault import Fault
from tests.mutants.run import main

ORDERS: Final = (
    Fault(
        "transaction join ignores an index added after prepare",
        "actors/transacting_partition.py",
        "if each.table is not self._table:",
        "if False:",
        "tests/actors/test_transactions_and_new_indexes.py",
        ["test_an_item_held_while_an_index_was_added_is_in_the_index"],
    ),
    Fault(
        "sweeper sets its swept-before time after reading",
        "actors/sweeper.py",
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
        "tests/actors/test_times_listed_meanwhile.py",
        ["test_an_item_listed_behind_the_page_being_read_goes_with_the_same_sweep"],
    ),
    Fault(
        "sweeper overwrites a time noticed while it reads",
        "actors/sweeper.py",
        "self._earliest_us = min(self._earliest_us, listed_us)",
        "self._earliest_us = listed_us",
        "tests/actors/test_times_listed_meanwhile.py",
        ["test_a_time_to_come_that_is_listed_behind_its_page_is_kept"],
    ),
    Fault(
        "feed tail moves after a failed sync",
        "actors/row_owner.py",
        "        if failure is None:\n            self.became_durable(batch)",
        "        self.became_durable(batch)",
        "tests/actors/test_durability.py",
        ["test_followers_of_a_table_never_see_a_change_whose_sync_failed"],
    ),
    Fault(
        "follower reports the end of its log before storing it",
        "actors/subscribers/subscriber.py",
        "        self.position = last\n        while",
        "        self.position = last\n        self.ended.set_result(None)\n        while",
        "tests/actors/test_subscribers.py",
        [
            "test_a_childs_follower_begins_when_the_end_of_its_parents_log_is_stored",
            "test_an_end_that_the_store_refuses_is_stored_before_a_child_begins",
        ],
    ),
    Fault(
        "trimming deletes one record too many",
        "streams/change_log.py",
        "keys_layout.change_row(partition_number, up_to + 1),",
        "keys_layout.change_row(partition_number, up_to + 2),",
        "tests/streams/test_change_log.py",
        ["test_trimming_deletes_the_records_up_to_a_counter_and_no_others[3]"],
    ),
    Fault(
        "relay drain clears its wake-up after looking at the log",
        "actors/subscribers/kafka_relay.py",
        """\
                # Clear before looking: a round that is published meanwhile must not be missed.
                self._has_published.clear()
                # A counter that no record has is passed by nobody.
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
        "tests/actors/test_draining.py",
        ["test_a_drain_ends_if_the_last_round_is_published_while_it_reads_the_log"],
    ),
    Fault(
        "destination takes the end of another phase for the end of this one",
        "actors/destination_keeper.py",
        "if destination is None or destination.status != message.status:",
        "if destination is None:",
        "tests/actors/test_draining.py",
        ["test_a_destination_whose_topic_is_reached_while_it_is_disabled_is_drained"],
    ),
    Fault(
        "drain of a relay that was stopped counts as done",
        "actors/destination_keeper.py",
        "        if not table.is_closed:\n            self._tell",
        "        if True:\n            self._tell",
        "tests/actors/test_draining.py",
        ["test_a_drain_goes_on_after_a_crash_of_the_databases_actor"],
    ),
    Fault(
        "index catches up although a follower was given up",
        "actors/global_index.py",
        "self.follows_all = has_passed and not self._is_closing",
        "self.follows_all = not self._is_closing",
        "tests/actors/test_given_up_followers.py",
        ["test_an_index_does_not_catch_up_without_one_of_its_followers"],
    ),
    Fault(
        "time to live catches up although an expirer was given up",
        "actors/time_to_live.py",
        "return all(have_passed) and not self._is_closing",
        "return not self._is_closing",
        "tests/actors/test_given_up_followers.py",
        ["test_time_to_live_does_not_catch_up_without_one_of_its_expirers"],
    ),
    Fault(
        "partition keeps its counts after a lost commit",
        "actors/row_owner.py",
        """\
                    await self._load_head()
                    continue
""",
        """\
                    (self._head_bytes,) = await self._store.latest.load([self._head_key])
                    continue
""",
        "tests/actors/test_lost_commits.py",
        [
            "test_counts_of_items_go_on_from_what_the_store_has_kept",
        ],
    ),
    Fault(
        "partition keeps its holds after a lost commit",
        "actors/transacting_partition.py",
        """\
        self._holds.clear()
        for transaction_id in list(self._held_paid):
            self._let_go(transaction_id, gives_back=True)
        await super()._load_head()
""",
        """\
        await super()._load_head()
""",
        "tests/actors/test_lost_commits.py",
        [
            "test_a_transaction_prepared_on_a_lost_item_is_not_joined",
        ],
    ),
    Fault(
        "token is in use only after the store was asked",
        "actors/client_tokens.py",
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
        "tests/actors/test_client_tokens.py",
        [
            "test_a_token_is_in_progress_while_the_store_is_asked_whether_it_is_new",
        ],
    ),
    Fault(
        "token that is not durable counts",
        "actors/client_tokens.py",
        """\
            if found != _NONE:
                found = await self._store.durable().load(rows)
""",
        "",
        "tests/actors/test_client_tokens.py",
        [
            "test_a_token_whose_transaction_never_became_durable_is_not_taken_for_repeated",
        ],
    ),
    Fault(
        "follower looks whether its log ended after reading",
        "actors/subscribers/subscriber.py",
        """\
            additions, last = self.feed.additions, self.feed.last
            records = await self.feed.read(
                self.position, max_records=_RUN_RECORDS, max_bytes=_RUN_BYTES
            )
""",
        """\
            additions = self.feed.additions
            records = await self.feed.read(
                self.position, max_records=_RUN_RECORDS, max_bytes=_RUN_BYTES
            )
            last = self.feed.last
""",
        "tests/actors/test_subscribers.py",
        [
            "test_a_log_that_ends_while_a_follower_reads_the_disk_is_followed_to_its_end",
        ],
    ),
    Fault(
        "follower counts additions after reading",
        "actors/subscribers/subscriber.py",
        """\
            additions, last = self.feed.additions, self.feed.last
            records = await self.feed.read(
                self.position, max_records=_RUN_RECORDS, max_bytes=_RUN_BYTES
            )
""",
        """\
            last = self.feed.last
            records = await self.feed.read(
                self.position, max_records=_RUN_RECORDS, max_bytes=_RUN_BYTES
            )
            additions = self.feed.additions
""",
        "tests/actors/test_subscribers.py",
        [
            "test_a_change_recorded_while_a_follower_reads_the_disk_wakes_it",
        ],
    ),
    Fault(
        "follower takes its checkpoint for stored before the commit",
        "actors/subscribers/subscriber.py",
        """\
        stored = encode_position(self.position)
        try:
            await self._store.commit([Group(self._key, self._stored, stored)])
""",
        """\
        stored = encode_position(self.position)
        before, self._stored = self._stored, stored
        try:
            await self._store.commit([Group(self._key, before, stored)])
""",
        "tests/actors/test_subscribers.py",
        [
            "test_an_end_that_the_store_refuses_is_stored_before_a_child_begins",
        ],
    ),
    Fault(
        "partition that crashed forgets the round it joined",
        "actors/transacting_partition.py",
        """\
        if self._joining is not None:
            await self._resolve(self._joining)
        await super().run()""",
        "        await super().run()",
        "tests/actors/test_joined_partitions.py",
        [
            "test_a_crash_before_the_outcome_is_known",
        ],
    ),
    Fault(
        "partition that crashed waits for an outcome it had",
        "actors/transacting_partition.py",
        """\
        # It comes once: after a crash from here on nobody waits for it again.
        self._joining = None
        if decision.committed:""",
        "        if decision.committed:",
        "tests/actors/test_joined_partitions.py",
        [
            "test_a_crash_after_the_outcome_is_known",
        ],
    ),
)

if __name__ == "__main__":
    sys.exit(main(ORDERS))

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
)

if __name__ == "__main__":
    sys.exit(main(ORDERS))

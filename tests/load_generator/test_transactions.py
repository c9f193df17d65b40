"""A transaction is visible as a whole or not at all."""

from __future__ import annotations

from dynactor.load.check.transactions import Transactions


def transactions() -> Transactions:
    made = Transactions()
    made.begin({1: 5, 2: 8, 3: 2})
    return made


def test_a_read_may_show_all_or_none_of_a_transaction():
    assert not list(transactions().torn({1: 5, 2: 8, 3: 2}))
    assert not list(transactions().torn({1: 4, 2: 7, 3: 1}))


def test_a_part_of_a_transaction_is_torn():
    (torn,) = transactions().torn({1: 5, 2: 7})
    assert torn.number == 2
    assert "version 7" in torn.text
    assert len(list(transactions().torn({1: 4, 2: 8, 3: 1}))) == 2


def test_a_later_write_or_delete_is_not_torn():
    assert not list(transactions().torn({1: 5, 2: 9}))
    assert not list(transactions().torn({1: 5}))


def test_items_written_together_are_read_together():
    made = transactions()
    assert set(made.items_beside(2)) == {1, 2, 3}
    assert not made.items_beside(4)
    made.begin({2: 9, 4: 1})
    assert set(made.items_beside(2)) == {2, 4}

"""Nodes that failed are found by counting the observer's own renewals."""

from __future__ import annotations

from dynactor.model.members import STILL_BEATS, Member, Observer


def member(beat: int, incarnation: str = "1") -> Member:
    return Member("n1", incarnation, beat, "n1:1", "1")


def test_a_member_whose_beat_stands_still_has_failed_after_five_renewals() -> None:
    observer = Observer()
    for _ in range(STILL_BEATS):
        observer.observe([member(7)])
        assert not observer.has_failed(member(7))
    observer.observe([member(7)])
    assert observer.has_failed(member(7))


def test_a_beat_that_moves_starts_the_count_again() -> None:
    observer = Observer()
    for beat in (1, 1, 1, 1, 2, 2):
        observer.observe([member(beat)])
    assert observer.still_beats(member(2)) == 1


def test_renewals_between_the_regular_ones_do_not_count() -> None:
    observer = Observer()
    observer.observe([member(7)])
    for _ in range(STILL_BEATS):
        observer.observe([member(7)], is_regular=False)
    assert observer.still_beats(member(7)) == 0


def test_a_node_that_joined_again_has_a_count_of_its_own() -> None:
    observer = Observer()
    for _ in range(STILL_BEATS + 1):
        observer.observe([member(7)])
    observer.observe([member(7, "2")])
    assert not observer.has_failed(member(7, "2"))

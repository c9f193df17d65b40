"""The ledger of a verified run: the results that a read may have, and findings for others."""

from __future__ import annotations

from dynactor.load.check.ledger import Ledger
from dynactor.load.work.records import Seen

_ITEM = 5
_ABSENT = 50


def ledger() -> Ledger:
    return Ledger(fields=2, loaded=10)


def seen(version: int, *stamps: int) -> Seen:
    return Seen(_ITEM, version, stamps or (version, version))


def read(of: Ledger, shown: Seen | None, number: int = _ITEM, **options: bool) -> dict[str, int]:
    of.end_read(of.begin_read(number), shown, **options)
    return of.findings.counts


def put(of: Ledger, number: int = _ITEM) -> int:
    write = of.begin_put(number)
    of.acknowledged(write)
    return write.version


def test_a_missing_or_unknown_item_is_a_finding():
    assert read(ledger(), seen(0)) == {}
    assert read(ledger(), None, _ABSENT) == {}
    assert read(ledger(), None) == {"stale": 1}
    assert read(ledger(), Seen(_ABSENT, 0, (0, 0)), _ABSENT) == {"foreign": 1}


def test_a_read_that_began_after_a_write_shows_it():
    of = ledger()
    put(of)
    assert read(of, seen(1)) == {}
    assert read(of, seen(0)) == {"stale": 1}


def test_a_read_during_a_write_may_show_the_old_or_new_version():
    for shown in (seen(0), seen(1)):
        of = ledger()
        reading = of.begin_read(_ITEM)
        write = of.begin_put(_ITEM)
        of.acknowledged(write)
        of.end_read(reading, shown)
        assert of.findings.counts == {}


def test_a_slow_read_during_a_write_does_not_excuse_a_later_stale_read():
    of = ledger()
    slow = of.begin_read(_ITEM)
    put(of)
    assert read(of, seen(0)) == {"stale": 1}
    of.end_read(slow, seen(0))
    assert of.findings.counts == {"stale": 1}


def test_a_version_that_a_read_showed_must_not_disappear():
    of = ledger()
    of.begin_put(_ITEM)
    assert read(of, seen(1)) == {}
    assert read(of, seen(0)) == {"stale": 1}


def test_an_unwritten_version_is_foreign():
    of = ledger()
    put(of)
    assert read(of, seen(2)) == {"foreign": 1}


def test_an_update_leaves_the_other_fields():
    of = ledger()
    write = of.begin_update(_ITEM)
    assert write is not None
    assert write.stamps == (0, 1)
    of.acknowledged(write)
    assert read(of, seen(1, 0, 1)) == {}
    assert read(of, seen(1, 1, 1)) == {"foreign": 1}


def test_a_refused_write_must_not_show():
    of = ledger()
    write = of.begin_put(_ITEM)
    of.refused(write)
    assert read(of, seen(0)) == {}
    assert read(of, seen(1)) == {"refused": 1}


def test_a_write_that_is_refused_after_it_was_read_is_a_finding():
    of = ledger()
    write = of.begin_put(_ITEM)
    read(of, seen(1))
    of.refused(write)
    assert of.findings.counts == {"refused": 1}


def test_a_write_without_an_answer_may_take_effect_at_any_time_or_never():
    of = ledger()
    of.unanswered(of.begin_put(_ITEM))
    assert read(of, seen(0)) == {}
    assert read(of, seen(1)) == {}
    assert put(of) == 2
    assert read(of, seen(2)) == {}
    assert read(of, seen(1)) == {}
    assert read(of, seen(0)) == {"stale": 1}


def test_no_update_starts_after_a_write_without_an_answer():
    of = ledger()
    of.unanswered(of.begin_put(_ITEM))
    assert of.begin_update(_ITEM) is None
    assert of.begin_put(_ITEM).expected is None


def test_a_deleted_item_is_missing():
    of = ledger()
    of.acknowledged(of.begin_delete(_ITEM))
    assert read(of, None) == {}
    assert read(of, seen(0)) == {"stale": 1}


def test_an_item_missing_after_the_run_is_lost():
    of = ledger()
    put(of)
    assert read(of, seen(0), at_end=True) == {"lost": 1}
    assert read(of, None, at_end=True) == {"lost": 2}


def test_an_eventually_consistent_read_shows_only_written_versions():
    of = ledger()
    put(of)
    of.refused(of.begin_put(_ITEM))
    put(of)
    for shown in (seen(0), seen(1), seen(3), None):
        assert read(of, shown, consistent=False) == {}
    assert read(of, seen(2), consistent=False) == {"refused": 1}
    assert read(of, seen(4), consistent=False)["foreign"] == 1


def test_a_condition_on_the_last_version_does_not_fail():
    of = ledger()
    put(of)
    write = of.begin_put(_ITEM)
    assert write.expected == 1
    of.refused(write)
    of.condition_failed(write)
    assert of.findings.counts == {"condition": 1}


def test_the_ledger_drops_versions_that_no_read_may_show():
    of = ledger()
    reading = of.begin_read(_ITEM)
    for _ in range(100):
        put(of)
    of.end_read(reading, seen(0))
    assert of.findings.counts == {}
    assert len(of._histories[_ITEM].states) == 1


def test_all_findings_are_counted_and_some_are_printed():
    of = ledger()
    for _ in range(100):
        read(of, None)
    assert of.findings.counts == {"stale": 100}
    assert len(of.findings.examples) == 20

"""The forecast of an index that does not exist, from a sample of items."""

from __future__ import annotations

import pytest

from dynactor.model.advice.index_forecast import forecast, load
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values.item import Item

TABLE_KEY = KeySchema((KeyAttribute("id", "S"),))
SAMPLED = 10


def planned(projection: Projection) -> IndexDefinition:
    return IndexDefinition(1, "planned", KeySchema((KeyAttribute("status", "S"),)), projection)


def items() -> list[Item]:
    """Six open orders, two paid ones, one with a wrong type, and one without the attribute."""
    states: list[Item] = [{"status": {"S": "open"}}] * 6 + [{"status": {"S": "paid"}}] * 2
    states += [{"status": {"N": "1"}}, {}]
    note = {"note": {"S": "x" * 1500}}
    return [{"id": {"S": str(n)}} | note | state for n, state in enumerate(states)]


def test_entries_are_counted_by_key():
    found = forecast(planned(Projection("ALL")), TABLE_KEY, items())
    assert found.sampled == SAMPLED
    assert found.with_entry == 0.8
    assert [(each.key, each.share) for each in found.keys] == [
        ({"status": {"S": "open"}}, 0.75),
        ({"status": {"S": "paid"}}, 0.25),
    ]
    assert found.entry_units == 2
    assert found.violating == 0.1
    (violation,) = found.violations
    assert violation.key == {"id": {"S": "8"}}
    assert (violation.attribute, violation.reason) == ("status", "wrong type")


def test_a_projection_makes_entries_smaller():
    whole = forecast(planned(Projection("ALL")), TABLE_KEY, items())
    keys = forecast(planned(Projection("KEYS_ONLY")), TABLE_KEY, items())
    # id and status with their names, and the overhead of an entry.
    assert keys.entry_bytes == 3 + 10 + 100
    assert keys.entry_units == 1
    assert whole.entry_bytes == keys.entry_bytes + 1504


def test_the_load_follows_the_shares():
    found = forecast(planned(Projection("ALL")), TABLE_KEY, items())
    loaded = load(found, 100.0)
    assert loaded.write_units == pytest.approx(160)
    assert loaded.hottest_units == pytest.approx(120)


def test_no_items_give_an_empty_forecast():
    found = forecast(planned(Projection("ALL")), TABLE_KEY, [])
    assert (found.with_entry, found.keys) == (0, [])
    assert load(found, 100.0).write_units == 0
